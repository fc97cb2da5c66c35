import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Histogram, Registry, register } from "prom-client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../../test/fixtures/lock-trial.js";
import { settled } from "../../../test/fixtures/manual-runtime.js";
import { watch } from "../../../test/fixtures/outcome.js";
import { parseScrape, type ScrapedMetric } from "../../../test/fixtures/prometheus-text.js";
import type { Subscription } from "../subscription.js";
import { startMetrics } from "./index.js";

let trial: LockTrial;
let registry: Registry;
let metrics: Subscription;
const server = createServer(async (_, response) => {
  response.setHeader("content-type", registry.contentType);
  response.end(await registry.metrics());
});

beforeEach(async () => {
  trial = new LockTrial();
  registry = new Registry();
  metrics = startMetrics({ registry });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterEach(() => {
  metrics.stop();
  server.close();
  server.closeAllConnections();
});

/** As Prometheus itself does it. */
async function scrape(): Promise<Map<string, ScrapedMetric>> {
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(response.headers.get("content-type")).toContain("version=0.0.4");
  return parseScrape(await response.text());
}

function valueIn(
  scraped: Map<string, ScrapedMetric>,
  name: string,
  labels: Record<string, string>,
): number | undefined {
  const { samples } = [...scraped].find(([metric]) => name.startsWith(metric))?.[1] ?? {
    samples: [],
  };
  const wanted = JSON.stringify(Object.entries(labels).sort());
  const isOne = (of: Readonly<Record<string, string>>): boolean =>
    JSON.stringify(Object.entries(of).sort()) === wanted;
  return samples.find((one) => one.name === name && isOne(one.labels))?.value;
}

describe("a scrape", () => {
  it("has every metric, by its name and type, before the first lock", async () => {
    const types = [...(await scrape())].map(([name, { type }]) => [name, type]);
    expect(types).toEqual([
      ["holdfast_acquire_duration_seconds", "histogram"],
      ["holdfast_hold_duration_seconds", "histogram"],
      ["holdfast_acquires_pending", "gauge"],
      ["holdfast_leases_held", "gauge"],
      ["holdfast_leases_lost_total", "counter"],
      ["holdfast_renewals_total", "counter"],
      ["holdfast_renewal_remaining_ratio", "histogram"],
      ["holdfast_handoffs_total", "counter"],
      ["holdfast_revocations_total", "counter"],
    ]);
  });

  it("tells the life of locks, in seconds", async () => {
    const mutex = { store: "ledger", kind: "mutex" };
    const held = await trial.others.mutex("x").acquire();
    const asked = watch(trial.locks.mutex("x").acquire());
    await settled();
    await trial.runtime.advance(40_000);
    const before = await scrape();
    expect(valueIn(before, "holdfast_acquires_pending", mutex)).toBe(1);
    expect(valueIn(before, "holdfast_leases_held", mutex)).toBe(1);
    await held.release();
    await trial.runtime.advance(0);
    await trial.others.revoke("x", { token: asked.value?.token ?? 0n, reason: "stuck" });
    await trial.runtime.advance(0);
    const after = await scrape();
    const acquired = { ...mutex, outcome: "granted" };
    expect(valueIn(after, "holdfast_acquires_pending", mutex)).toBe(0);
    expect(valueIn(after, "holdfast_leases_held", mutex)).toBe(0);
    expect(valueIn(after, "holdfast_acquire_duration_seconds_count", acquired)).toBe(2);
    expect(valueIn(after, "holdfast_acquire_duration_seconds_sum", acquired)).toBe(40);
    const bucket = { ...acquired, le: "30" };
    expect(valueIn(after, "holdfast_acquire_duration_seconds_bucket", bucket)).toBe(1);
    const lost = { ...mutex, reason: "revoked" };
    expect(valueIn(after, "holdfast_leases_lost_total", lost)).toBe(1);
    expect(valueIn(after, "holdfast_revocations_total", { store: "ledger" })).toBe(1);
    expect(valueIn(after, "holdfast_handoffs_total", mutex)).toBe(1);
    expect(valueIn(after, "holdfast_renewals_total", { ...mutex, outcome: "renewed" })).toBe(4);
    expect(valueIn(after, "holdfast_renewal_remaining_ratio_count", mutex)).toBe(4);
  });

  it("has zeros for what did not happen yet, errors included", async () => {
    await trial.locks.mutex("x").acquire();
    const scraped = await scrape();
    const mutex = { store: "ledger", kind: "mutex" };
    const failed = { ...mutex, outcome: "error" };
    expect(valueIn(scraped, "holdfast_acquire_duration_seconds_count", failed)).toBe(0);
    const lost = { ...mutex, reason: "expired" };
    expect(valueIn(scraped, "holdfast_leases_lost_total", lost)).toBe(0);
  });

  it("has groups with any text in their names", async () => {
    metrics.stop();
    metrics = startMetrics({ registry, group: (name) => name });
    const name = 'quote " backslash \\ line\nend';
    await trial.locks.mutex(name).acquire();
    const labels = { store: "ledger", kind: "mutex", group: name };
    expect(valueIn(await scrape(), "holdfast_leases_held", labels)).toBe(1);
  });
});

describe("startMetrics", () => {
  it("takes the metrics out of the registry when it is stopped, and may start again", async () => {
    metrics.stop();
    metrics.stop();
    expect((await scrapeText()).trim()).toBe("");
    {
      using again = startMetrics({ registry });
      expect(await scrapeText()).toContain("holdfast_leases_held");
      expect(again).toBeDefined();
    }
    expect((await scrapeText()).trim()).toBe("");
  });

  it("leaves nothing behind when the registry has the metrics already", async () => {
    expect(() => startMetrics({ registry })).toThrow(/already been registered/);
    await trial.locks.mutex("x").acquire();
    const labels = { store: "ledger", kind: "mutex" };
    expect(valueIn(await scrape(), "holdfast_leases_held", labels)).toBe(1);
  });

  it("uses the global registry unless told otherwise", async () => {
    using global = startMetrics();
    expect(await register.metrics()).toContain("holdfast_leases_held");
    expect(global).toBeDefined();
  });

  it("refuses options that it does not know", () => {
    const misspelt = { registy: registry } as object;
    expect(() => startMetrics(misspelt)).toThrow(/did you mean registry/);
  });
});

describe("the reader of scrapes", () => {
  const HEAD = "# HELP a b\n# TYPE a histogram\n";

  it.each([
    ["no end", "# HELP a b\n# TYPE a gauge\na 1"],
    ["a sample without a type", "a 1\n"],
    ["a sample of another metric", "# HELP a b\n# TYPE a gauge\nb 1\n"],
    ["a type without help", "# TYPE a gauge\na 1\n"],
    ["a value that is none", "# HELP a b\n# TYPE a gauge\na one\n"],
    ["a label without quotes", "# HELP a b\n# TYPE a gauge\na{b=1} 1\n"],
    ["an open quote", '# HELP a b\n# TYPE a gauge\na{b="x"y"} 1\n'],
    ["a series twice", '# HELP a b\n# TYPE a gauge\na{b="x"} 1\na{b="x"} 2\n'],
    ["falling buckets", `${HEAD}a_bucket{le="1"} 2\na_bucket{le="+Inf"} 1\na_sum 1\na_count 1\n`],
    ["a wrong count", `${HEAD}a_bucket{le="+Inf"} 1\na_sum 1\na_count 2\n`],
  ])("refuses %s", (_, text) => expect(() => parseScrape(text)).toThrow());
});

async function scrapeText(): Promise<string> {
  return await registry.metrics();
}

it("refuses a prom-client that would leave all series empty", () => {
  const { zero } = Histogram.prototype;
  // Came with 13.2.
  Reflect.deleteProperty(Histogram.prototype, "zero");
  try {
    expect(() => startMetrics({ registry: new Registry() })).toThrow("prom-client 13.2 or later");
  } finally {
    Histogram.prototype.zero = zero;
  }
});
