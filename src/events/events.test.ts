import { subscribe, tracingChannel, unsubscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { ManualRuntime, settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import { Holdfast } from "../api/holdfast.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import { type AcquireEvent, channels } from "./events.js";
import { events } from "./publish.js";

let trial: LockTrial;
let heard: { channel: string; event: Record<string, unknown> }[];
let traces: { step: string; event: AcquireEvent }[];

const onEvent = (event: unknown, channel: string | symbol): void => {
  heard.push({ channel: String(channel), event: event as Record<string, unknown> });
};
const trace = (step: string) => (event: unknown) =>
  void traces.push({ step, event: event as AcquireEvent });
const tracers = {
  start: trace("start"),
  end: trace("end"),
  asyncStart: trace("asyncStart"),
  asyncEnd: trace("asyncEnd"),
  error: trace("error"),
};
const plain = [
  channels.held,
  channels.renew,
  channels.release,
  channels.lost,
  channels.detached,
  channels.handoff,
  channels.revoked,
];

const heardOn = (channel: string): Record<string, unknown>[] =>
  heard.filter((one) => one.channel === channel).map(({ event }) => event);
const outcomes = (): (string | undefined)[] =>
  traces.filter(({ step }) => step === "asyncEnd").map(({ event }) => event.outcome);

beforeEach(() => {
  trial = new LockTrial();
  heard = [];
  traces = [];
  for (const channel of plain) subscribe(channel, onEvent);
  tracingChannel<unknown, AcquireEvent>(channels.acquire).subscribe(tracers);
});

afterEach(() => {
  for (const channel of plain) unsubscribe(channel, onEvent);
  tracingChannel<unknown, AcquireEvent>(channels.acquire).unsubscribe(tracers);
});

describe("holdfast:acquire", () => {
  it("traces an acquisition from its start to a grant", async () => {
    const held = await trial.others.mutex("x").acquire();
    traces = [];
    const asked = watch(trial.locks.mutex("x").acquire());
    await trial.runtime.advance(700);
    expect(traces.map(({ step }) => step)).toEqual(["start", "end"]);
    expect(traces[0]?.event).toMatchObject({ name: "x", space: "lock", store: "ledger" });
    await held.release();
    await trial.runtime.advance(0);
    const token = asked.value?.token;
    const { step, event } = traces.at(-1) ?? {};
    expect(step).toBe("asyncEnd");
    expect(event).toMatchObject({ kind: "mutex", outcome: "granted", waitedMs: 700, token });
  });

  it("tells of every kind of lock, with weight, limit and namespace", async () => {
    const { locks } = trial;
    await locks.mutex("x").acquire();
    await locks.readWrite("r").read.acquire();
    await locks.readWrite("w").write.acquire();
    await locks.semaphore("s", 5).acquire({ weight: 2 });
    await locks.election("e").campaign();
    await locks.beginOnce("o", { keepMs: 1_000 });
    expect(asked().map(({ kind, weight, limit }) => [kind, weight, limit])).toEqual([
      ["mutex", 1, null],
      ["read", 1, null],
      ["write", 1, null],
      ["semaphore", 2, 5],
      ["election", 1, null],
      ["once", 1, null],
    ]);
    const space = new MemorySpace();
    const store = Object.assign(memoryStore({ space }), { namespace: "shop" });
    await using shop = new Holdfast(store);
    await shop.mutex("x").acquire();
    expect(traces.at(-1)?.event).toMatchObject({ store: "memory", namespace: "shop" });
  });

  it("tells who held the lock and how many stood ahead when the call was queued", async () => {
    const held = await trial.others.mutex("x").acquire({ meta: { job: "first" } });
    void watch(trial.others.mutex("x").acquire());
    await settled();
    traces = [];
    const first = watch(trial.locks.mutex("x").acquire());
    const second = watch(trial.locks.mutex("x").acquire());
    await trial.runtime.advance(50);
    const third = watch(trial.locks.mutex("x").acquire());
    await settled();
    const holder = { token: held.token, meta: { job: "first" } };
    expect(asked()).toMatchObject([
      { holder, ahead: 1 },
      { holder, ahead: 2 },
      { holder, ahead: null },
    ]);
    await trial.others.close();
    await trial.runtime.advance(10);
    const fourth = watch(trial.locks.mutex("x").acquire());
    await settled();
    // The store has not reported to the second and the third since they were queued.
    expect(asked().at(-1)).toMatchObject({ holder, ahead: null });
    for (const turn of [first, second, third, fourth]) {
      await trial.runtime.advance(0);
      await turn.value?.release();
    }
    // The first is the waiter of the process that closed.
    expect(outcomes()).toEqual(["error", "granted", "granted", "granted", "granted"]);
    // The event keeps the holder at the time of queueing.
    expect(asked()[0]).toMatchObject({ holder, ahead: 1 });
  });

  it("carries the trace of the holder to the waiters, turn by turn", async () => {
    let calls = 0;
    const mark = (event: unknown): void => {
      (event as AcquireEvent).traceparent = `trace ${calls++}`;
    };
    subscribe("tracing:holdfast:acquire:start", mark);
    const held = await trial.locks.mutex("x").acquire({ meta: { job: "first" } });
    const meta = { job: "first" };
    const turn = watch(trial.locks.mutex("x").acquire({ meta }));
    const other = watch(trial.others.mutex("x").acquire({ meta }));
    await settled();
    expect(asked().slice(1)).toMatchObject([
      { holder: { meta: { ...meta, traceparent: "trace 0" } } },
      { holder: { meta: { ...meta, traceparent: "trace 0" } } },
    ]);
    await held.release();
    await trial.runtime.advance(0);
    await other.value?.release();
    await trial.runtime.advance(0);
    expect(turn.value?.state).toBe("held");
    const late = watch(trial.locks.mutex("x").acquire({ meta }));
    await settled();
    expect(asked().at(-1)).toMatchObject({ holder: { meta: { ...meta, traceparent: "trace 1" } } });
    unsubscribe("tracing:holdfast:acquire:start", mark);
    await turn.value?.release();
    await trial.runtime.advance(0);
    await late.value?.release();
  });

  it("tells who is in the way of a call that does not wait", async () => {
    const { token } = await trial.others.mutex("x").acquire();
    await trial.locks.mutex("x").tryAcquire();
    expect(traces.at(-1)?.event).toMatchObject({ outcome: "busy", holder: { token } });
    expect(traces.at(-1)?.event.ahead).toBeUndefined();
  });

  it("tells every other end: busy, timeout, aborted, error", async () => {
    await trial.others.readWrite("x").read.acquire();
    traces = [];
    const mutex = trial.locks.mutex("x");
    await mutex.tryAcquire();
    void watch(mutex.acquire({ waitMs: 10 }));
    await trial.runtime.advance(10);
    const controller = new AbortController();
    void watch(mutex.acquire({ signal: controller.signal }));
    await settled();
    controller.abort();
    await settled();
    trial.arbiter.fate = "request broken";
    void watch(trial.locks.semaphore("s", 2).acquire({ storeTimeoutMs: 100 }));
    await trial.runtime.advance(100);
    expect(outcomes()).toEqual(["busy", "timeout", "aborted", "error"]);
    expect(traces.at(-1)?.event).toMatchObject({ name: "s", kind: "semaphore" });
    expect(traces.filter(({ step }) => step === "error").length).toBeGreaterThan(0);
  });

  it("tells of once and elections, too", async () => {
    await trial.locks.once("o", () => {}, { keepMs: 1_000 });
    await trial.locks.once("o", () => {}, { keepMs: 1_000 });
    await trial.locks.election("e").lead(() => {});
    const ends = traces.filter(({ step }) => step === "asyncEnd").map(({ event }) => event);
    expect(ends.map(({ space, outcome }) => [space, outcome])).toEqual([
      ["once", "granted"],
      ["once", "busy"],
      ["election", "granted"],
    ]);
  });
});

describe("the life of a lease", () => {
  it("is told by renewals and its release", async () => {
    const { token, release } = await hold("x");
    await trial.runtime.advance(10_000);
    trial.arbiter.next("renew", "request broken");
    await trial.runtime.advance(10_000);
    await release();
    const lock = { name: "x", space: "lock", store: "ledger", namespace: "" };
    const about = { ...lock, kind: "mutex", weight: 1, limit: null, token };
    const ttlMs = 30_000;
    expect(heardOn("holdfast:renew").slice(0, 2)).toEqual([
      { ...about, ttlMs, outcome: "renewed", spareMs: 19_698, remainingMs: 29_698 },
      {
        ...about,
        ttlMs,
        outcome: "failed",
        spareMs: 19_698,
        remainingMs: 19_698,
        error: expect.objectContaining({ message: "The store failed: connection reset" }),
      },
    ]);
    expect(heardOn("holdfast:release")).toMatchObject([
      { ...about, outcome: "released", heldMs: 20_000 },
    ]);
    expect(heardOn("holdfast:lost")).toEqual([]);
  });

  it("is told by its loss, once, with the reason", async () => {
    const { token } = await hold("x");
    await trial.loseTouch();
    expect(heardOn("holdfast:lost")).toMatchObject([{ name: "x", token, reason: "expired" }]);
  });

  it("is told by failed renewals before a loss, also where the store only hangs", async () => {
    const store = new ScriptedStore(new ManualRuntime());
    const locks = new Holdfast(store);
    const taken = watch(locks.mutex("x").acquire({ ttlMs: 3_000 }));
    store.latest.grant(7n);
    await settled();
    store.onRenew = () => new Promise(() => {});
    await store.runtime.advance(1_500);
    const error = expect.objectContaining({
      message: "The store has not answered the renewal for 500 ms.",
    });
    expect(heardOn("holdfast:renew")).toMatchObject([
      { outcome: "failed", remainingMs: 1_500, error },
    ]);
    await store.runtime.advance(1_499);
    // The timer is late: nothing is left, not less than nothing.
    store.runtime.block(40);
    await store.runtime.advance(0);
    expect(taken.value?.state).toBe("lost");
    expect(heardOn("holdfast:renew").length).toBeGreaterThan(3);
    expect(heardOn("holdfast:renew").at(-1)).toMatchObject({ outcome: "failed", remainingMs: 0 });
    expect(heard.at(-1)).toMatchObject({
      channel: "holdfast:lost",
      event: { reason: "expired" },
    });
  });

  it("is told by no failed renewal where the process itself was late", async () => {
    const { token } = await hold("x");
    trial.runtime.block(40_000);
    await trial.runtime.advance(0);
    expect(heardOn("holdfast:lost")).toMatchObject([{ token, reason: "expired" }]);
    expect(heardOn("holdfast:renew")).toEqual([]);
  });

  it("is told by a release that failed, with the error, or came too late", async () => {
    const failing = await hold("x");
    const late = await hold("y");
    trial.server.ledger.forget();
    await late.release();
    trial.arbiter.fate = "request broken";
    const released = watch(failing.release());
    await trial.runtime.advance(5_000);
    expect(released.value).toBe(true);
    const events = heardOn("holdfast:release");
    expect(events).toMatchObject([{ outcome: "lost" }, { outcome: "failed" }]);
    expect(events[1]?.error).toBeInstanceOf(Error);
  });

  it("is told by a revocation: to the holder as lost, to who revoked as done", async () => {
    const { token } = await hold("x");
    await trial.others.revoke("x", { token, reason: "stuck" });
    await trial.runtime.advance(0);
    expect(heardOn("holdfast:revoked")).toEqual([
      { name: "x", space: "lock", store: "ledger", namespace: "", token, reason: "stuck" },
    ]);
    expect(heardOn("holdfast:lost")).toMatchObject([{ token, reason: "revoked" }]);
    await trial.others.revoke("x", { token, reason: "again" });
    expect(heardOn("holdfast:revoked")).toHaveLength(1);
  });

  it("begins once, before all else, also by a turn and by resume", async () => {
    const first = await trial.locks.mutex("x").acquire();
    const second = watch(trial.locks.mutex("x").acquire());
    await settled();
    await first.release();
    await trial.runtime.advance(0);
    await second.value?.release();
    const given = await trial.locks.mutex("y").acquire({ transferable: true });
    await (await trial.others.resume(given.detach()))?.release();
    const lives = heard.map(({ channel, event }) => [channel, event.name, event.token]);
    expect(lives).toEqual([
      ["holdfast:held", "x", first.token],
      ["holdfast:release", "x", first.token],
      ["holdfast:held", "x", second.value?.token],
      ["holdfast:release", "x", second.value?.token],
      ["holdfast:held", "y", given.token],
      ["holdfast:detached", "y", given.token],
      ["holdfast:held", "y", given.token],
      ["holdfast:release", "y", given.token],
    ]);
  });

  it("ends by detach, once, and is not lost afterwards", async () => {
    const lease = await trial.locks.mutex("x").acquire({ transferable: true });
    await trial.runtime.advance(1_000);
    lease.detach();
    lease.detach();
    expect(heardOn("holdfast:detached")).toMatchObject([{ token: lease.token, heldMs: 1_000 }]);
    await trial.runtime.advance(30_000);
    expect(lease.state).toBe("lost");
    expect(heardOn("holdfast:lost")).toEqual([]);
  });

  it("is told by handoffs, within a process and between two, turn by turn", async () => {
    const first = await trial.others.mutex("x").acquire();
    const turns = [1, 2].map(() => watch(trial.locks.mutex("x").acquire()));
    await settled();
    await first.release();
    await trial.runtime.advance(0);
    const outcome = turns[0]?.value?.token;
    expect(heardOn("holdfast:handoff")).toMatchObject([{ token: outcome, isLocal: false }]);
    await turns[0]?.value?.release();
    await trial.runtime.advance(0);
    await turns[1]?.value?.release();
    const released = heardOn("holdfast:release").map(({ token }) => token);
    expect(released).toEqual([first.token, ...turns.map(({ value }) => value?.token)]);
  });
});

describe("every event", () => {
  it("can be written as JSON, with tokens as text", async () => {
    const { token, release } = await hold("x");
    const asked = watch(trial.others.mutex("x").acquire());
    await trial.runtime.advance(10_000);
    await trial.others.revoke("x", { token, reason: "stuck" });
    await trial.runtime.advance(0);
    await release();
    await asked.value?.release();
    const written = JSON.parse(JSON.stringify([...heard, ...traces]));
    for (const { event } of written) expect(event.token).toEqual(expect.any(String));
    const { event } = written.findLast(({ step }: { step: string }) => step === "asyncEnd");
    expect(event.holder.token).toBe(`${token}`);
  });
});

describe("no event", () => {
  it("has an owner, a client or a handle in it", async () => {
    const lease = await trial.locks.mutex("x").acquire({ transferable: true });
    const waiting = watch(trial.others.mutex("x").acquire());
    await trial.runtime.advance(10_000);
    await trial.others.revoke("x", { token: lease.token, reason: "stuck" });
    await trial.runtime.advance(0);
    await waiting.value?.release();
    const text = inspect([heard, traces], { depth: 20, showHidden: true });
    const secrets = new Set(
      trial.arbiter.sentOf("acquire").flatMap((one) => [one.owner, one.client]),
    );
    expect(secrets.size).toBe(2);
    for (const secret of secrets) expect(text).not.toContain(`'${secret}'`);
    expect(text).not.toContain(lease.handle ?? "hf1.");
    expect(text).not.toContain("hf1.");
  });

  it("is made while nobody listens", async () => {
    for (const channel of plain) unsubscribe(channel, onEvent);
    tracingChannel<unknown, AcquireEvent>(channels.acquire).unsubscribe(tracers);
    const spies = [
      vi.spyOn(events.acquire.start, "runStores"),
      vi.spyOn(events.held, "publish"),
      vi.spyOn(events.renew, "publish"),
      vi.spyOn(events.release, "publish"),
      vi.spyOn(events.lost, "publish"),
      vi.spyOn(events.handoff, "publish"),
    ];
    const { release } = await hold("x");
    await trial.runtime.advance(10_000);
    await release();
    await hold("y");
    await trial.loseTouch();
    for (const spy of spies) {
      expect(spy).not.toHaveBeenCalled();
      spy.mockRestore();
    }
    for (const channel of plain) subscribe(channel, onEvent);
    tracingChannel<unknown, AcquireEvent>(channels.acquire).subscribe(tracers);
  });
});

/** The events of all acquisitions, in the order of their calls. */
function asked(): AcquireEvent[] {
  return traces.filter(({ step }) => step === "start").map(({ event }) => event);
}

async function hold(name: string): Promise<{ token: bigint; release(): Promise<boolean> }> {
  const lease = await trial.locks.mutex(name).acquire();
  return { token: lease.token, release: () => lease.release() };
}
