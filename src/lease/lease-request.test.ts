import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { beforeEach, describe, expect, it } from "vitest";
import { LocalQueueTrial, type Member } from "../../test/fixtures/local-queue-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import type { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import type { AcquireOptions } from "../options/options.js";

let trial: LocalQueueTrial;
let store: ScriptedStore;

const join = (given?: AcquireOptions): Member => trial.join(given);

beforeEach(() => {
  trial = new LocalQueueTrial();
  store = trial.store;
});

describe("the first call for a lock", () => {
  it("asks for one turn, and leaves nothing behind", async () => {
    for (const token of [10n, 20n]) {
      const only = await trial.holdWith(token);
      expect(store.latest.claim.span).toBe(1);
      await only.lease.release();
    }
    expect([store.asked.length, store.released.length]).toEqual([2, 2]);
  });

  it("that is granted the lock at once is shared by the calls that came meanwhile", async () => {
    const first = join();
    const members = [join(), join()];
    await settled();
    expect(store.asked).toHaveLength(1);
    await trial.grant(10n);
    await first.lease.release();
    expect([store.asked.length, store.released.length]).toEqual([2, 1]);
    await trial.grant(20n);
    for (const [turn, member] of members.entries()) {
      await settled();
      expect(member.lease.token).toBe(20n + BigInt(turn));
      await member.lease.release();
    }
    expect(store.released).toHaveLength(2);
  });

  it("that ends while its grant is under way leaves its grant to the calls behind it", async () => {
    const controller = new AbortController();
    join({ signal: controller.signal });
    const second = join();
    await settled();
    store.latest.grant(10n);
    controller.abort();
    await settled();
    expect([store.asked.length, store.released.length]).toEqual([2, 1]);
    await trial.grant(20n);
    expect(second.lease.token).toBe(20n);
  });

  it("that has to wait lets the next call stand behind it, with the turns left", async () => {
    const first = join({ maxLocalTurns: 5 });
    const members = Array.from({ length: 4 }, () => join({ maxLocalTurns: 5 }));
    await settled();
    expect(store.asked).toHaveLength(1);
    store.latest.wait?.report(null, null);
    members.push(join({ maxLocalTurns: 5 }));
    await settled();
    expect(store.asked.map(({ claim }) => claim.span)).toEqual([1, 4]);
    store.asked[0]?.grant(10n);
    await settled();
    await first.lease.release();
    await trial.grant(20n);
    for (const member of members.slice(0, 4)) {
      await settled();
      await member.lease.release();
    }
    expect(members[4]?.state).toBe("pending");
    expect(store.asked).toHaveLength(3);
  });

  it("that gives up does not take the place of a call behind it away", async () => {
    const controller = new AbortController();
    const first = join({ signal: controller.signal });
    const second = join();
    await settled();
    store.latest.wait?.report(null, null);
    controller.abort();
    await settled();
    expect(first.state).toBe("rejected");
    await trial.grant(10n);
    expect([second.lease.token, store.asked.length]).toEqual([10n, 2]);
  });

  it("that has to wait bounds the turns behind it, also after members have left", async () => {
    join({ maxLocalTurns: 3 });
    await settled();
    store.latest.wait?.report(null, null);
    const controller = new AbortController();
    join({ maxLocalTurns: 3, signal: controller.signal });
    await settled();
    controller.abort();
    await settled();
    join({ maxLocalTurns: 3 });
    await settled();
    const open = store.asked.filter(({ wait }) => !wait?.ended);
    expect(open.map(({ claim }) => claim.span)).toEqual([1, 2]);
  });

  it("that has waited for long lets the next call take its place at once", async () => {
    join({ waitMs: 60_000 });
    await settled();
    store.latest.wait?.report(null, null);
    await trial.runtime.advance(5_000);
    join();
    await settled();
    expect(store.asked).toHaveLength(2);
  });

  it("that does not wait fails alone", async () => {
    const failed = watch(trial.locks.mutex("x").tryAcquire());
    const member = join();
    await settled();
    store.latest.fail(new Error("down"));
    await settled();
    expect(failed.error).toMatchObject({ message: "down" });
    await trial.grant(10n);
    expect(member.lease.token).toBe(10n);
  });

  it("that holds is shared, also if the store reports once more after the grant", async () => {
    const [first, second] = [join(), join()];
    await settled();
    const { wait } = store.latest;
    await trial.grant(10n);
    wait?.report(null, null);
    await first.lease.release();
    await trial.grant(20n);
    expect(second.lease.token).toBe(20n);
  });

  it("that was lost unnoticed lets every later call ask, also one from its signal", async () => {
    const options = { ttlMs: 1_000 };
    const first = await trial.holdWith(10n, options);
    const again: Member[] = [];
    first.lease.signal.addEventListener("abort", () => again.push(join(options)));
    trial.runtime.block(5_000);
    const second = join(options);
    await settled();
    await trial.runtime.advance(1);
    for (const member of [second, ...again]) {
      await trial.grant(20n * BigInt(store.asked.length));
      expect(member.lease.state).toBe("held");
      await member.lease.release();
      await settled();
    }
    expect(again).toHaveLength(1);
  });

  it("that holds for one turn passes nothing on: the next call asks the store", async () => {
    const first = await trial.holdWith(10n);
    const second = join();
    await settled();
    expect(store.asked).toHaveLength(1);
    expect(trial.locks.held()).toEqual([first.lease]);
    await first.lease.release();
    expect([store.asked.length, store.released.length]).toEqual([2, 1]);
    await trial.grant(20n);
    expect(second.lease.token).toBe(20n);
  });

  it("that is lost makes room: the next call asks again", async () => {
    const first = join();
    await settled();
    const grant = await trial.grant(10n);
    store.tell(grant, "revoked");
    expect(first.lease.state).toBe("lost");
    const next = await trial.holdWith(20n);
    expect(next.lease.token).toBe(20n);
  });

  it("whose grant is lost unnoticed lets the next call ask, with events", async () => {
    const listener = (): void => {};
    subscribe("tracing:holdfast:acquire:start", listener);
    try {
      const options = { ttlMs: 1_000 };
      await trial.holdWith(10n, options);
      const controller = new AbortController();
      join({ ...options, signal: controller.signal });
      await settled();
      controller.abort();
      await settled();
      trial.runtime.block(5_000);
      const next = join(options);
      await trial.runtime.advance(1);
      await trial.grant(20n);
      expect(next.lease.token).toBe(20n);
    } finally {
      unsubscribe("tracing:holdfast:acquire:start", listener);
    }
  });
});
