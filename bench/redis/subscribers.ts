import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider } from "@opentelemetry/sdk-trace-base";
import * as opentelemetry from "holdfast/opentelemetry";
import * as prometheus from "holdfast/prometheus";
import { Registry } from "prom-client";
import type { Contestant, Question } from "../contest.js";
import { measured } from "../costs.js";
import { atMost } from "../goals.js";
import { pairsOf } from "../turns.js";
import { holdfast } from "./candidates.js";
import { BenchRedis, connected } from "./server.js";

const redis = new BenchRedis();

const NEVER_MS = 2 ** 31 - 1;

/** The metrics and traces of one round; `stop` ends them, and exports what they gathered. */
interface Subscriber {
  stop(): Promise<void>;
}

const SUBSCRIBERS: Readonly<Record<string, () => Subscriber>> = {
  "no subscriber": () => ({ stop: async () => {} }),
  "metrics of prometheus": () => {
    const registry = new Registry();
    const { stop } = prometheus.startMetrics({ registry });
    return {
      stop: async () => {
        await registry.metrics();
        stop();
      },
    };
  },
  "metrics of opentelemetry": () => {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: NEVER_MS });
    const meterProvider = new MeterProvider({ readers: [reader] });
    const { stop } = opentelemetry.startMetrics({ meterProvider });
    return {
      stop: async () => {
        await meterProvider.forceFlush();
        stop();
        await meterProvider.shutdown();
      },
    };
  },
  "traces of opentelemetry": () => {
    const tracerProvider = new BasicTracerProvider();
    const { stop } = opentelemetry.startTraces({ tracerProvider });
    return {
      stop: async () => {
        stop();
        await tracerProvider.shutdown();
      },
    };
  },
};

export const subscribers: Question = {
  store: "redis",
  name: "subscribers",
  title: "acquire and release, one at a time, with metrics and traces",
  about: "The price of metrics and traces: the same pair with each kind of subscriber.",
  unit: "µs/pair",
  better: "lower",
  rounds: 101,
  async contestants(isQuick) {
    const pairs = isQuick ? 300 : 200;
    const port = await redis.start();
    return Promise.all(
      Object.entries(SUBSCRIBERS).map(([name, start]): Promise<Contestant> => {
        return connected(holdfast(name), port, async (locker) => {
          const subscriber = start();
          const run = (): Promise<void> => pairsOf(locker, "pair", pairs);
          const { elapsedMs, more } = await measured(redis, pairs, run);
          await subscriber.stop();
          return { value: (elapsedMs * 1000) / pairs, more };
        });
      }),
    );
  },
  goals(of) {
    const none = of("no subscriber");
    return ["metrics of prometheus", "metrics of opentelemetry"].flatMap((name) => [
      atMost(1.03, `the time without a subscriber: ${name}`, of(name), none),
    ]);
  },
  close: () => redis.stop(),
};
