/** Metrics and traces of locks on a real server, across real processes. */
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { startTraces } from "../../src/telemetry/opentelemetry/index.js";
import { startMetrics } from "../../src/telemetry/prometheus/index.js";
import { ControlledProcess } from "../faults/process.js";
import { parseScrape } from "../fixtures/prometheus-text.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./trial.js";

let server: RedisServer;
let trial: Trial;
beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server?.close());
beforeEach(() => {
  trial = new Trial(server);
});
afterEach(() => trial.close());

test("a wait links to the trace of the holder in another process", async () => {
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  using traces = startTraces({ tracerProvider: new BasicTracerProvider({ spanProcessors }) });
  const url = `${server.url}?namespace=${trial.namespace}`;
  const module = new URL("./traced-holder.mjs", import.meta.url);
  await using holder = new ControlledProcess(module, { args: [url] });
  const { traceId, spanId } = await holder.receive<{ traceId: string; spanId: string }>();
  const locks = trial.ioredis(server.port);
  const asked = locks.mutex("m").acquire();
  const isQueued = async (): Promise<boolean> => (await locks.inspect("m")).waiters.length === 1;
  await waitUntil(isQueued, { what: "a place in the queue" });
  await holder.send({});
  await (await asked).release();
  const [span] = exporter.getFinishedSpans();
  expect(span?.attributes["holdfast.outcome"]).toBe("granted");
  expect(span?.links).toMatchObject([{ context: { traceId, spanId, isRemote: true } }]);
  expect(traces).toBeDefined();
});

test("a server that stops answering shows in a scrape: late, failed, lost", async () => {
  const registry = new Registry();
  using metrics = startMetrics({ registry });
  const total = async (name: string, labels: Record<string, string> = {}): Promise<number> => {
    const samples = [...parseScrape(await registry.metrics()).values()].flatMap(
      (one) => one.samples,
    );
    const isOne = (of: Readonly<Record<string, string>>): boolean =>
      Object.entries(labels).every(([label, value]) => of[label] === value);
    const found = samples.filter((one) => one.name === name && isOne(one.labels));
    return found.reduce((sum, { value }) => sum + value, 0);
  };
  const locks = trial.ioredis(server.port);
  const lease = await locks.mutex("m").acquire({ ttlMs: 4_000 });
  const isRenewed = async (): Promise<boolean> =>
    (await total("holdfast_renewals_total", { outcome: "renewed" })) > 0;
  await waitUntil(isRenewed, { what: "a renewal" });
  expect(await total("holdfast_leases_held", { store: "redis", kind: "mutex" })).toBe(1);
  await server.pause();
  try {
    await waitUntil(() => lease.state === "lost", { what: "the loss" });
    expect(await total("holdfast_renewals_total", { outcome: "failed" })).toBeGreaterThan(0);
    expect(await total("holdfast_leases_lost_total", { reason: "expired" })).toBe(1);
    expect(await total("holdfast_leases_held")).toBe(0);
    const failing = locks.mutex("m").acquire({ storeTimeoutMs: 200 });
    await expect(failing).rejects.toThrow();
    const failed = { outcome: "error" };
    expect(await total("holdfast_acquire_duration_seconds_count", failed)).toBe(1);
    expect(await total("holdfast_acquires_pending")).toBe(0);
  } finally {
    server.resume();
  }
  expect(metrics).toBeDefined();
});
