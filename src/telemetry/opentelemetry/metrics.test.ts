import { metrics as globalMetrics } from "@opentelemetry/api";
import {
  AggregationTemporality,
  DataPointType,
  type Histogram,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { afterEach, beforeEach, expect, it } from "vitest";
import { LockTrial } from "../../../test/fixtures/lock-trial.js";
import { settled } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import type { Subscription } from "../subscription.js";
import { startMetrics } from "./index.js";

const MUTEX = { store: "ledger", kind: "mutex" };

let trial: LockTrial;
let exporter: InMemoryMetricExporter;
let meterProvider: MeterProvider;
let metrics: Subscription;

beforeEach(() => {
  trial = new LockTrial();
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
  meterProvider = new MeterProvider({ readers: [reader] });
  metrics = startMetrics({ meterProvider });
});

afterEach(async () => {
  metrics.stop();
  await meterProvider.shutdown();
  globalMetrics.disable();
});

async function exported(): Promise<Map<string, MetricData>> {
  exporter.reset();
  await meterProvider.forceFlush();
  const scopes = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics);
  return new Map(
    scopes.flatMap(({ scope, metrics: list }) => {
      expect(scope.name).toBe("holdfast");
      return list.map((metric) => [metric.descriptor.name, metric]);
    }),
  );
}

function valueIn(metric: MetricData | undefined, labels: Record<string, string>): unknown {
  const point = metric?.dataPoints.find(({ attributes }) => {
    const names = Object.keys(attributes);
    const isSame = names.every((name) => attributes[name] === labels[name]);
    return isSame && names.length === Object.keys(labels).length;
  });
  return point?.value;
}

it("exports every metric, with its unit and type", async () => {
  const lease = await trial.locks.mutex("x").acquire();
  await trial.runtime.advance(10_000);
  await lease.release();
  const all = [...(await exported()).values()];
  const { HISTOGRAM, SUM } = DataPointType;
  const told = all.map((one) => [
    one.descriptor.name,
    one.descriptor.unit,
    one.dataPointType,
    "isMonotonic" in one && one.isMonotonic,
  ]);
  expect(told.sort()).toEqual([
    ["holdfast.acquire.duration", "s", HISTOGRAM, false],
    ["holdfast.acquires.pending", "{acquisition}", SUM, false],
    ["holdfast.handoffs", "{handoff}", SUM, true],
    ["holdfast.hold.duration", "s", HISTOGRAM, false],
    ["holdfast.leases.held", "{lease}", SUM, false],
    ["holdfast.leases.lost", "{lease}", SUM, true],
    ["holdfast.renewal.remaining_ratio", "1", HISTOGRAM, false],
    ["holdfast.renewals", "{renewal}", SUM, true],
    ["holdfast.revocations", "{lease}", SUM, true],
  ]);
});

it("exports values up to the moment of the export", async () => {
  const held = await trial.others.mutex("x").acquire();
  const asked = watch(trial.locks.mutex("x").acquire());
  await settled();
  await trial.runtime.advance(2_000);
  const before = await exported();
  expect(valueIn(before.get("holdfast.acquires.pending"), MUTEX)).toBe(1);
  expect(valueIn(before.get("holdfast.leases.held"), MUTEX)).toBe(1);
  await held.release();
  await trial.runtime.advance(0);
  await asked.value?.release();
  const after = await exported();
  expect(valueIn(after.get("holdfast.acquires.pending"), MUTEX)).toBe(0);
  expect(valueIn(after.get("holdfast.leases.held"), MUTEX)).toBe(0);
  expect(valueIn(after.get("holdfast.leases.lost"), { ...MUTEX, reason: "expired" })).toBe(0);
  const granted = { ...MUTEX, outcome: "granted" };
  const waited = valueIn(after.get("holdfast.acquire.duration"), granted) as Histogram;
  expect(waited).toMatchObject({ count: 2, sum: 2, max: 2 });
  expect(waited.buckets.boundaries).toContain(0.0025);
  const released = { ...MUTEX, outcome: "released" };
  expect(valueIn(after.get("holdfast.hold.duration"), released)).toMatchObject({ count: 2 });
});

it("has a name of a lock only by its group", async () => {
  await trial.locks.mutex("secret:1").acquire();
  expect(JSON.stringify([...(await exported()).values()])).not.toContain("secret");
  metrics.stop();
  metrics = startMetrics({ meterProvider, group: (name) => name.split(":")[0] ?? "" });
  await trial.locks.mutex("invoice:42").acquire();
  const held = (await exported()).get("holdfast.leases.held");
  expect(valueIn(held, { ...MUTEX, group: "invoice" })).toBe(1);
});

it("exports nothing new after its stop", async () => {
  await trial.locks.mutex("x").acquire();
  metrics.stop();
  await trial.locks.mutex("y").acquire();
  const after = await exported();
  expect(after.has("holdfast.leases.held")).toBe(false);
  const granted = { ...MUTEX, outcome: "granted" };
  expect(valueIn(after.get("holdfast.acquire.duration"), granted)).toMatchObject({ count: 1 });
});

it("uses the global provider unless told otherwise, and no SDK is needed", async () => {
  metrics.stop();
  {
    using none = startMetrics();
    await trial.locks.mutex("w").acquire();
    expect(none).toBeDefined();
  }
  globalMetrics.setGlobalMeterProvider(meterProvider);
  metrics = startMetrics();
  await trial.locks.mutex("x").acquire();
  expect(valueIn((await exported()).get("holdfast.leases.held"), MUTEX)).toBe(1);
});

it("refuses options that it does not know", () => {
  const misspelt = { groups: () => "" } as object;
  expect(() => startMetrics(misspelt)).toThrow(/did you mean group/);
});
