import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { ManualRuntime, settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import { Holdfast } from "../api/holdfast.js";
import { channels } from "../events/events.js";
import { Collector } from "./collector.js";
import type { Grouping } from "./groups.js";
import { METRICS, type MetricName } from "./metrics.js";

let trial: LockTrial;
let collector: Collector;
let observed: { metric: string; labels: Record<string, string>; value: number }[];

const MUTEX = { store: "ledger", kind: "mutex" };

function collect(group?: Grouping): Collector {
  collector = new Collector((metric, labels) => {
    return (value) => void observed.push({ metric: metric.name, labels, value });
  }, group);
  collector.start();
  return collector;
}

/** The sum of all series of a counter or a gauge whose labels are these, among others. */
function sum(name: MetricName, labels: Record<string, string> = {}): number {
  const isOne = (of: Readonly<Record<string, string>>): boolean =>
    Object.entries(labels).every(([label, value]) => of[label] === value);
  const series = [...collector.series(METRICS[name])].filter((one) => isOne(one.labels));
  return series.reduce((total, { value }) => total + value, 0);
}

/** The values of a histogram, with its own label where it has one. */
function values(name: MetricName): (string | number)[][] {
  collector.countKept();
  const { by, name: metric } = METRICS[name];
  return observed
    .filter((one) => one.metric === metric)
    .map(({ labels, value }) => (by ? [labels[by.label] ?? "", value] : [value]));
}

beforeEach(() => {
  trial = new LockTrial();
  observed = [];
  collect();
});

afterEach(() => collector.stop());

describe("acquisitions", () => {
  it("are pending from the call to its end, whatever its end is", async () => {
    const held = await trial.others.mutex("x").acquire();
    const { locks } = trial;
    const stop = new AbortController();
    const asked = [
      watch(locks.mutex("x").acquire({ fairness: "strict" })),
      watch(locks.mutex("x").acquire({ waitMs: 10, fairness: "strict" })),
      watch(locks.mutex("x").acquire({ signal: stop.signal, fairness: "strict" })),
      watch(locks.readWrite("x").read.acquire()),
    ];
    await settled();
    expect(sum("acquiresPending", MUTEX)).toBe(3);
    expect(sum("acquiresPending")).toBe(4);
    await locks.mutex("x").tryAcquire();
    stop.abort();
    await trial.runtime.advance(250);
    expect(sum("acquiresPending", MUTEX)).toBe(1);
    await held.release();
    await trial.runtime.advance(0);
    await asked[0]?.value?.release();
    await trial.runtime.advance(0);
    expect(sum("acquiresPending")).toBe(0);
    expect(values("acquireDuration")).toEqual([
      ["granted", 0],
      ["busy", 0],
      ["aborted", 0],
      ["timeout", 0.01],
      ["granted", 0.25],
      ["granted", 0.25],
    ]);
  });

  it("end as errors where the store fails, or the client closes", async () => {
    await trial.others.mutex("x").acquire();
    void watch(trial.locks.mutex("x").acquire());
    trial.arbiter.next("acquire", "request broken");
    await settled();
    expect(sum("acquiresPending")).toBe(1);
    await trial.locks.close();
    expect(sum("acquiresPending")).toBe(0);
    expect(values("acquireDuration").at(-1)?.[0]).toBe("error");
  });

  it("that are older are not pending, and are timed where they were traced", async () => {
    collector.stop();
    const onEnd = (): void => {};
    const held = await trial.others.mutex("x").acquire();
    const untraced = watch(trial.locks.mutex("x").acquire());
    await settled();
    tracingChannel(channels.acquire).asyncEnd.subscribe(onEnd);
    const traced = watch(trial.locks.mutex("x").acquire());
    await settled();
    collect();
    expect(sum("acquiresPending")).toBe(0);
    await held.release();
    await trial.runtime.advance(0);
    expect(sum("leasesHeld")).toBe(1);
    await untraced.value?.release();
    await trial.runtime.advance(0);
    await traced.value?.release();
    tracingChannel(channels.acquire).asyncEnd.unsubscribe(onEnd);
    expect(sum("acquiresPending")).toBe(0);
    expect(sum("leasesHeld")).toBe(0);
    expect(values("acquireDuration")).toHaveLength(1);
  });
});

describe("leases", () => {
  it("are held until their release, turn by turn", async () => {
    const first = await trial.locks.mutex("x").acquire();
    const second = watch(trial.locks.mutex("x").acquire());
    await trial.locks.semaphore("s", 3).acquire({ weight: 2 });
    await settled();
    expect(sum("leasesHeld", MUTEX)).toBe(1);
    expect(sum("leasesHeld")).toBe(2);
    await trial.runtime.advance(400);
    await first.release();
    await trial.runtime.advance(0);
    expect(sum("leasesHeld", MUTEX)).toBe(1);
    await second.value?.release();
    expect(sum("leasesHeld", MUTEX)).toBe(0);
    expect(values("holdDuration").slice(0, 1)).toEqual([["released", 0.4]]);
    expect(sum("leasesLost")).toBe(0);
  });

  it("that are older than the collector are not counted, neither held nor ended", async () => {
    collector.stop();
    const old = await trial.locks.mutex("x").acquire();
    const doomed = await trial.locks.mutex("y").acquire();
    collect();
    await trial.locks.mutex("z").acquire();
    expect(sum("leasesHeld")).toBe(1);
    await old.release();
    await trial.others.revoke("y", { token: doomed.token, reason: "stuck" });
    await trial.runtime.advance(0);
    expect(sum("leasesHeld")).toBe(1);
    expect(values("holdDuration")).toEqual([]);
    // A loss is a fact, however old the lease is.
    expect(sum("leasesLost", { reason: "revoked" })).toBe(1);
  });

  it("are lost once, with their reason", async () => {
    const lease = await trial.locks.mutex("x").acquire();
    await trial.loseTouch();
    await lease.release();
    expect(sum("leasesHeld")).toBe(0);
    expect(sum("leasesLost")).toBe(1);
    expect(sum("leasesLost", { ...MUTEX, reason: "expired" })).toBe(1);
    expect(values("holdDuration").map(([outcome]) => outcome)).toEqual(["lost"]);
  });

  it("are lost where only the release finds that they are gone", async () => {
    const lease = await trial.locks.mutex("x").acquire();
    trial.server.ledger.forget();
    await lease.release();
    expect(sum("leasesHeld")).toBe(0);
    expect(sum("leasesLost")).toBe(1);
    expect(sum("leasesLost", { reason: "missing" })).toBe(1);
    expect(values("holdDuration").map(([outcome]) => outcome)).toEqual(["lost"]);
  });

  it("are not held when the store could not be told of their release", async () => {
    const lease = await trial.locks.mutex("x").acquire();
    trial.arbiter.fate = "request broken";
    void watch(lease.release());
    await trial.runtime.advance(5_000);
    expect(sum("leasesHeld")).toBe(0);
    expect(values("holdDuration").map(([outcome]) => outcome)).toEqual(["failed"]);
  });

  it("move with detach and resume, and end once", async () => {
    const lease = await trial.locks.mutex("x").acquire({ transferable: true });
    const handle = lease.detach();
    expect(sum("leasesHeld")).toBe(0);
    const resumed = await trial.others.resume(handle);
    expect(sum("leasesHeld")).toBe(1);
    await trial.runtime.advance(40_000);
    expect(sum("leasesHeld")).toBe(1);
    await resumed?.release();
    await lease.release();
    expect(sum("leasesHeld")).toBe(0);
    expect(sum("leasesLost")).toBe(0);
    expect(values("holdDuration").map(([outcome]) => outcome)).toEqual(["detached", "released"]);
  });

  it("that were detached and are released here after all end once", async () => {
    const lease = await trial.locks.mutex("x").acquire({ transferable: true });
    lease.detach();
    expect(await lease.release()).toBe(true);
    expect(sum("leasesHeld")).toBe(0);
    expect(values("holdDuration").map(([outcome]) => outcome)).toEqual(["detached"]);
  });

  it("are given back by close", async () => {
    await trial.locks.mutex("x").acquire();
    await trial.locks.mutex("y").acquire();
    await trial.locks.close();
    expect(sum("leasesHeld")).toBe(0);
  });

  it("that were lost before their caller heard of them leave nothing behind", async () => {
    const store = new ScriptedStore(new ManualRuntime());
    const asked = watch(new Holdfast(store).mutex("x").acquire());
    const grant = store.latest.grant(7n);
    const lose = (): void => {
      expect(asked.state).toBe("pending");
      store.tell(grant, "replaced");
    };
    subscribe(channels.held, lose);
    await settled();
    unsubscribe(channels.held, lose);
    expect(asked.value?.state).toBe("lost");
    expect(sum("leasesLost", { reason: "replaced" })).toBe(1);
    expect(sum("leasesHeld")).toBe(0);
  });
});

describe("renewals", () => {
  it("are counted by their outcome, with the part of the ttl that was left", async () => {
    await trial.locks.mutex("x").acquire({ ttlMs: 30_000 });
    await trial.runtime.advance(10_000);
    trial.arbiter.next("renew", "request broken");
    await trial.runtime.advance(10_500);
    expect(sum("renewals", { ...MUTEX, outcome: "renewed" })).toBe(2);
    expect(sum("renewals", { outcome: "failed" })).toBe(1);
    const [first, late] = values("remainingRatio").map(([ratio]) => Number(ratio));
    expect(first).toBeCloseTo(19_698 / 30_000, 3);
    expect(late).toBeLessThan(first ?? 0);
    expect(values("remainingRatio")).toHaveLength(2);
  });
});

describe("handoffs and revocations", () => {
  it("are counted", async () => {
    const first = await trial.others.mutex("x").acquire();
    const turns = [1, 2].map(() => watch(trial.locks.mutex("x").acquire()));
    await settled();
    await first.release();
    await trial.runtime.advance(0);
    await turns[0]?.value?.release();
    await trial.runtime.advance(0);
    expect(sum("handoffs", MUTEX)).toBe(2);
    const token = turns[1]?.value?.token ?? 0n;
    await trial.others.revoke("x", { token, reason: "stuck" });
    expect(sum("revocations", { store: "ledger" })).toBe(1);
    expect([...collector.series(METRICS.revocations)][0]?.labels).toEqual({ store: "ledger" });
  });
});

describe("labels", () => {
  it("are all there, with zeros, from the first call on", async () => {
    void watch(trial.locks.mutex("x").acquire());
    for (const metric of Object.values(METRICS)) {
      if (metric.type === "histogram") continue;
      const own = [...collector.series(metric)].map(({ labels }) => labels[metric.by?.label ?? ""]);
      expect(own).toEqual(metric.by?.values ?? [undefined]);
    }
    expect(sum("leasesLost")).toBe(0);
  });

  it("have no name of a lock, unless a group was asked for", async () => {
    await trial.locks.mutex("secret:1").acquire();
    const all = (): string =>
      JSON.stringify(Object.values(METRICS).map((metric) => [...collector.series(metric)]));
    expect(all()).not.toContain("secret");
    collector.stop();
    collect((name) => name.split(":")[0] ?? "");
    for (const id of [1, 2, 3]) await trial.locks.mutex(`invoice:${id}`).acquire();
    await trial.locks.mutex("mail").acquire();
    expect(sum("leasesHeld", { group: "invoice" })).toBe(3);
    expect(sum("leasesHeld", { group: "mail" })).toBe(1);
    expect(all()).not.toContain("invoice:");
  });

  it("count a group that is none, or one too many, as other", async () => {
    collector.stop();
    collect((name) => {
      if (name === "broken") throw new Error("no group");
      return name === "number" ? (7 as unknown as string) : name === "empty" ? "" : name;
    });
    for (const name of ["broken", "number", "empty"]) await trial.locks.mutex(name).acquire();
    expect(sum("leasesHeld", { group: "other" })).toBe(3);
    for (let id = 0; id < 1_100; id += 1) await trial.locks.mutex(`${id}`).acquire();
    const held = [...collector.series(METRICS.leasesHeld)];
    expect(held.length).toBeLessThanOrEqual(1_001);
    expect(sum("leasesHeld")).toBe(1_103);
  });

  it("of a gauge are the same at both ends, even if the group changes its mind", async () => {
    let group = "a";
    collector.stop();
    collect(() => group);
    const lease = await trial.locks.mutex("x").acquire();
    expect(sum("leasesHeld", { group: "a" })).toBe(1);
    group = "b";
    await lease.release();
    for (const { value } of collector.series(METRICS.leasesHeld)) expect(value).toBe(0);
  });
});

it("counts nothing any more after its stop, and keeps few events", async () => {
  for (let id = 0; id < 600; id += 1) await trial.locks.mutex("x").run(() => {});
  // Nothing was read: the events were counted because there were many.
  expect(observed.length).toBeGreaterThan(500);
  collector.stop();
  const count = observed.length;
  expect(count).toBe(1_200);
  await trial.locks.mutex("x").acquire();
  expect(sum("leasesHeld")).toBe(0);
  expect(observed).toHaveLength(count);
});

it("tells leases with the same token apart", async () => {
  const runtime = new ManualRuntime();
  const stores = ["a", "b", "c"].map((namespace) =>
    Object.assign(new ScriptedStore(runtime), { namespace }),
  );
  const leases = stores.map((store) => {
    const asked = watch(new Holdfast(store).mutex("x").acquire());
    store.latest.grant(7n);
    return asked;
  });
  await settled();
  expect(sum("leasesHeld")).toBe(3);
  for (const [index, left] of [
    [1, 2],
    [0, 1],
    [2, 0],
  ] as const) {
    await leases[index]?.value?.release();
    expect(sum("leasesHeld")).toBe(left);
  }
});
