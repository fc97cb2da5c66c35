import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { beforeEach, describe, expect, it } from "vitest";
import { LocalQueueTrial, type Member } from "../../test/fixtures/local-queue-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import type { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import type { Renewal } from "../contract/store.js";
import type { AcquireOptions } from "../options/options.js";

let trial: LocalQueueTrial;
let store: ScriptedStore;

const join = (given?: AcquireOptions): Member => trial.join(given);

beforeEach(() => {
  trial = new LocalQueueTrial();
  store = trial.store;
});

describe("those who wait for a turn", () => {
  it("keep the process alive, and nothing else does", async () => {
    const first = await trial.holdWith(10n);
    expect(trial.runtime.keepsAlive).toBe(false);
    const member = join();
    await settled();
    expect(trial.runtime.keepsAlive).toBe(true);
    await first.lease.release();
    await trial.grant(20n);
    await settled();
    expect(member.lease.state).toBe("held");
    expect(trial.runtime.keepsAlive).toBe(false);
  });
});

describe("turns", () => {
  it("are taken on one grant, first come first, each with the next token", async () => {
    const first = await trial.holdWith(10n);
    const members = [join(), join(), join()];
    await settled();
    expect(store.asked).toHaveLength(1);
    await first.lease.release();
    expect(store.asked).toHaveLength(2);
    expect(store.latest.claim.span).toBe(32);
    await trial.grant(20n);
    const tokens: bigint[] = [];
    for (const member of members) {
      await settled();
      tokens.push(member.lease.token);
      expect(await member.lease.release()).toBe(true);
    }
    expect(tokens).toEqual([20n, 21n, 22n]);
    expect(store.asked).toHaveLength(2);
    expect(store.released).toHaveLength(2);
  });

  it("are no more than the store licensed", async () => {
    const first = await trial.holdWith(10n);
    const members = Array.from({ length: 12 }, () => join({ maxLocalTurns: 5 }));
    await settled();
    await first.lease.release();
    for (const [round, turns] of [5, 5, 2].entries()) {
      expect(store.latest.claim.span).toBe(5);
      await trial.grant(BigInt(100 * (round + 1)));
      for (const member of members.splice(0, turns)) {
        await settled();
        await member.lease.release();
      }
      expect(store.released).toHaveLength(round + 2);
    }
    expect(store.asked).toHaveLength(4);
  });

  it("are no more than that, however many calls join meanwhile or less was granted", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [join(), join()];
    await settled();
    await first.lease.release();
    await trial.grant(20n, 1);
    const fourth = join();
    await second.lease.release();
    await settled();
    expect([third.state, fourth.state]).toEqual(["pending", "pending"]);
    expect(store.asked).toHaveLength(3);
    expect(store.latest.claim.span).toBe(32);
  });

  it("release and ask again at once, in that order, when the licence is used up", async () => {
    const order: string[] = [];
    store.onRelease = async () => {
      order.push(`release, ${store.asked.length} asked`);
      return true;
    };
    const first = await trial.holdWith(10n);
    join();
    await settled();
    void first.lease.release();
    expect(order).toEqual(["release, 1 asked"]);
    expect(store.asked).toHaveLength(2);
  });

  it("join only with equals: other times and wishes mean a claim of their own", async () => {
    await trial.holdWith(10n);
    const others: AcquireOptions[] = [
      { ttlMs: 5_000 },
      { graceMs: 100 },
      { renew: false },
      { maxHoldMs: 60_000 },
      { transferable: true },
      { fairness: "strict" },
      { maxLocalTurns: 1 },
      { meta: { job: 7 } },
    ];
    for (const given of others) join(given);
    await settled();
    expect(store.asked).toHaveLength(1 + others.length);
    expect(new Set(store.asked.map(({ claim }) => claim.span))).toEqual(new Set([1]));
  });

  it("are for mutexes alone", async () => {
    const { read } = trial.locks.readWrite("r");
    const first = read.acquire();
    void read.acquire();
    void trial.locks.election("e").campaign();
    void trial.locks.election("e").campaign();
    await settled();
    expect(store.asked).toHaveLength(4);
    store.asked[0]?.grant(1n);
    await (await first).release();
    expect(store.asked).toHaveLength(4);
  });

  it("are renewed for the time asked for, whatever the turn before renewed for", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [join(), join()];
    await settled();
    await first.lease.release();
    await trial.grant(20n);
    await second.lease.renew(300);
    await second.lease.release();
    await settled();
    const renewals = store.renewed.length;
    await trial.runtime.advance(9_000);
    expect(store.renewed.length - renewals).toBeLessThan(3);
    expect(third.lease.state).toBe("held");
  });

  it("do not begin on a grant whose grace has begun", async () => {
    const given = { graceMs: 1_000 };
    const first = await trial.holdWith(10n, given);
    const [second, third] = [join(given), join(given)];
    await settled();
    await first.lease.release();
    await trial.grant(20n);
    store.onRenew = () => Promise.reject(new Error("down"));
    await trial.runtime.advance(29_500);
    await second.lease.release();
    expect(third.state).toBe("pending");
    expect(store.asked).toHaveLength(3);
  });
});

describe("a call that does not wait", () => {
  it("is told at once that this very process holds it", async () => {
    await trial.holdWith(10n);
    await trial.runtime.advance(50);
    expect(await trial.locks.mutex("x").tryAcquire()).toBeNull();
    const other = join({ waitMs: 0 });
    await settled();
    expect(other.error).toMatchObject({ holder: { token: 10n, heldMs: 50 } });
    expect(store.asked).toHaveLength(1);
  });

  it("asks the store when no other call of this process does", async () => {
    const only = join({ waitMs: 0 });
    await settled();
    expect(store.latest.wait).toBeNull();
    const [first] = store.asked;
    const waiting = join();
    await settled();
    first?.busy();
    await settled();
    expect(only.error).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT" });
    expect(store.asked).toHaveLength(2);
    await trial.grant(10n);
    expect(waiting.lease.token).toBe(10n);
  });
});

describe("a waiter that gives up", () => {
  it("leaves the other members alone", async () => {
    const first = await trial.holdWith(10n);
    const controller = new AbortController();
    const [second, third] = [join({ signal: controller.signal }), join({ waitMs: 500 })];
    const fourth = join();
    await settled();
    controller.abort(new Error("enough"));
    await trial.runtime.advance(500);
    expect(second.error).toMatchObject({ message: "enough" });
    expect(third.error).toMatchObject({ code: "HF_ACQUIRE_TIMEOUT", holder: { token: 10n } });
    await first.lease.release();
    expect(store.latest.claim.span).toBe(1);
    await trial.grant(20n);
    expect(fourth.lease.token).toBe(20n);
  });

  it("as the last one withdraws the representative", async () => {
    const controller = new AbortController();
    const only = join({ signal: controller.signal });
    await settled();
    const { wait } = store.latest;
    controller.abort();
    await settled();
    expect(wait?.ended).toBe(true);
    expect(only.state).toBe("rejected");
    const next = await trial.holdWith(10n);
    expect(next.lease.token).toBe(10n);
  });

  it("while the grant was under way: it goes back", async () => {
    const controller = new AbortController();
    join({ signal: controller.signal });
    await settled();
    const grant = store.latest.grant(10n);
    controller.abort();
    await settled();
    expect(store.released.map((release) => release.grant)).toEqual([grant]);
    expect(trial.locks.held()).toEqual([]);
  });
});

describe("a store that fails", () => {
  it("fails everybody who waits here, and the next one asks anew", async () => {
    const members = [join(), join(), join()];
    await settled();
    store.latest.fail(new Error("down"));
    await settled();
    expect(members.map(({ error }) => (error as Error).message)).toEqual(["down", "down", "down"]);
    const next = await trial.holdWith(10n);
    expect(next.lease.token).toBe(10n);
  });
});

describe("a grant that has ended on its way", () => {
  it("starts no turn: the members ask again", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [join(), join()];
    await settled();
    await first.lease.release();
    const ended = store.latest.grant(20n);
    ended.deadlineMs = Number.NEGATIVE_INFINITY;
    await settled();
    expect([second.state, third.state]).toEqual(["pending", "pending"]);
    expect(store.released.at(-1)?.grant).toBe(ended);
    await trial.grant(60n);
    expect([second.lease.token, second.lease.state]).toEqual([60n, "held"]);
    await second.lease.release();
    await settled();
    expect([third.lease.token, third.lease.state]).toEqual([61n, "held"]);
  });
});

describe("a release that a listener hears of", () => {
  it("is done: the lease is over, and passes on no second turn", async () => {
    const first = await trial.holdWith(10n);
    const [second, third, fourth] = [join(), join(), join()];
    await settled();
    await first.lease.release();
    await trial.grant(20n);
    const states: string[] = [];
    const onRelease = (): void => {
      states.push(second.lease.state);
      if (states.length === 1) void second.lease.release();
    };
    subscribe("holdfast:release", onRelease);
    expect(await second.lease.release()).toBe(true);
    unsubscribe("holdfast:release", onRelease);
    await settled();
    expect(states).toEqual(["released"]);
    expect([third.lease.token, fourth.state]).toEqual([21n, "pending"]);
  });
});

describe("a grant that is lost", () => {
  it("ends the turn under way, and the next member asks again", async () => {
    const first = join();
    await settled();
    const grant = await trial.grant(10n);
    const [second, third] = [join(), join()];
    await settled();
    store.tell(grant, "revoked", "stuck");
    expect(first.lease.state).toBe("lost");
    expect(second.state).toBe("pending");
    expect(store.latest.claim.span).toBe(32);
    await trial.grant(20n);
    expect([second.lease.token, second.lease.state]).toEqual([20n, "held"]);
    expect(third.state).toBe("pending");
    expect(await first.lease.release()).toBe(false);
    expect(second.lease.state).toBe("held");
  });

  it("is that of the present turn, if the renewal was sent in the turn before", async () => {
    const answers: ((renewal: Renewal) => void)[] = [];
    store.onRenew = () => new Promise((resolve) => answers.push((renewal) => resolve([renewal])));
    const first = await trial.holdWith(10n);
    const [second, third, fourth] = [join(), join(), join()];
    await settled();
    await first.lease.release();
    const grant = await trial.grant(20n);
    const renewing = second.lease.renew().catch((error: Error) => error);
    await second.lease.release();
    await settled();
    expect([third.lease.token, third.lease.state]).toEqual([21n, "held"]);
    answers[0]?.(store.end(grant, "revoked", "stuck"));
    await renewing;
    await settled();
    expect([third.lease.state, fourth.state]).toEqual(["lost", "pending"]);
    expect(await third.lease.release()).toBe(false);
    await trial.grant(60n);
    expect([fourth.lease.token, fourth.lease.state]).toEqual([60n, "held"]);
  });

  it("by a listener of its release is not passed on to the next member", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [join(), join()];
    await settled();
    await first.lease.release();
    const grant = await trial.grant(20n);
    const end = (): void => store.tell(grant, "revoked", "stuck");
    subscribe("holdfast:release", end);
    expect(await second.lease.release()).toBe(true);
    unsubscribe("holdfast:release", end);
    await settled();
    expect(third.state).toBe("pending");
    await trial.grant(60n);
    expect([third.lease.token, third.lease.state]).toEqual([60n, "held"]);
  });

  it("while a listener of its release blocks is not passed on to the next member", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [join(), join()];
    await settled();
    await first.lease.release();
    await trial.grant(20n);
    const block = (): void => trial.runtime.block(40_000);
    subscribe("holdfast:release", block);
    expect(await second.lease.release()).toBe(true);
    unsubscribe("holdfast:release", block);
    await settled();
    expect(third.state).toBe("pending");
    await trial.grant(60n);
    expect([third.lease.token, third.lease.state]).toEqual([60n, "held"]);
  });

  it("is told to its current turn alone: an earlier one was released in time", async () => {
    const first = await trial.holdWith(10n);
    const [second, third] = [join(), join()];
    await settled();
    await first.lease.release();
    const grant = await trial.grant(20n);
    await second.lease.release();
    await settled();
    store.tell(grant, "replaced");
    expect([second.lease.state, third.lease.state]).toEqual(["released", "lost"]);
  });
});
