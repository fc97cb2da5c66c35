import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { InvalidOptionError, StoreError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { Leader } from "./election.js";

let trial: LockTrial;

beforeEach(() => {
  trial = new LockTrial();
});

describe("campaign", () => {
  it("elects one, first come first, across processes and within one", async () => {
    const first = await trial.others.election("e").campaign();
    const order: string[] = [];
    const second = watch(trial.locks.election("e").campaign());
    await settled();
    const third = watch(trial.others.election("e").campaign());
    await settled();
    const fourth = watch(trial.locks.election("e").campaign());
    await settled();
    for (const [name, one] of Object.entries({ second, third, fourth })) {
      void one.promise.then(() => order.push(name));
    }
    let leader: Lease | undefined = first;
    for (const next of [second, third, fourth]) {
      await leader?.release();
      await trial.runtime.advance(0);
      leader = next.value;
    }
    expect(order).toEqual(["second", "third", "fourth"]);
  });

  it("waits for ever by default, whatever the Holdfast says, or as told", async () => {
    const brief = new LockTrial({ waitMs: 1_000 });
    await brief.others.election("e").campaign();
    const patient = watch(brief.locks.election("e").campaign());
    const told = watch(brief.locks.election("e", { waitMs: 2_000 }).campaign());
    await brief.runtime.advance(3_600_000);
    expect(patient.state).toBe("pending");
    expect(told.error).toMatchObject({ waitMs: 2_000 });
  });

  it("has a key space of its own, apart from locks of the same name", async () => {
    await trial.locks.mutex("e").acquire();
    expect((await trial.others.election("e").campaign({ waitMs: 0 })).state).toBe("held");
    expect((await trial.locks.inspect("e", "election")).holders).toHaveLength(1);
  });
});

describe("lead", () => {
  it("gives what the body returns, and resigns", async () => {
    expect(await trial.locks.election("e").lead(async () => 7)).toBe(7);
    expect(trial.server.ledger.size).toBe(0);
  });

  it("resigns nothing that the body detached", async () => {
    const lead = (lease: Lease) => trial.others.resume(lease.detach());
    const resumed = await trial.locks.election("e", { transferable: true }).lead(lead);
    expect(resumed?.state).toBe("held");
    expect((await trial.locks.inspect("e", "election")).holders).toHaveLength(1);
  });

  it("resigns and rethrows when the body throws", async () => {
    const error = new Error("body");
    const led = trial.locks.election("e").lead(() => {
      throw error;
    });
    await expect(led).rejects.toBe(error);
    expect(trial.server.ledger.size).toBe(0);
  });

  it.each(["returns", "throws"])(
    "after a loss waits for a body that %s, then campaigns again",
    async (how) => {
      const terms: Lease[] = [];
      let running = 0;
      let end: () => void = () => {};
      const led = watch(
        trial.locks.election("e").lead(async (lease) => {
          running += 1;
          expect(running).toBe(1);
          terms.push(lease);
          if (terms.length === 2) return "second term";
          await new Promise<void>((resume) => {
            end = resume;
          });
          running -= 1;
          if (how === "throws") throw lease.signal.reason;
          return "first term";
        }),
      );
      await settled();
      await trial.loseTouch();
      expect(terms[0]?.signal.aborted).toBe(true);
      await trial.runtime.advance(60_000);
      expect(terms).toHaveLength(1);
      end();
      await trial.runtime.advance(0);
      expect(led.value).toBe("second term");
      expect(terms[1]?.token).toBeGreaterThan(terms[0]?.token ?? 0n);
    },
  );

  it.each(["returns", "throws"])(
    "campaigns again after a body that %s because its grace has begun",
    async (how) => {
      const terms: Lease[] = [];
      const office = trial.locks.election("e", { graceMs: 10_000 });
      const led = watch(
        office.lead(async (lease) => {
          terms.push(lease);
          if (terms.length === 2) return "second term";
          await new Promise((resume) => lease.signal.addEventListener("abort", resume));
          if (how === "throws") throw lease.signal.reason;
          return "first term";
        }),
      );
      await settled();
      await trial.loseTouch(25_000);
      // Its release was not heard either: the office is free when its lease is over.
      await trial.runtime.advance(6_000);
      expect(led.value).toBe("second term");
      expect(terms[0]?.state).toBe("released");
    },
  );

  it("stays a candidate for as long as the store is out of reach after a loss", async () => {
    let terms = 0;
    const led = watch(
      trial.locks.election("e").lead(async (lease) => {
        terms += 1;
        if (terms === 2) return "second term";
        await new Promise((resume) => lease.signal.addEventListener("abort", resume));
        return "first term";
      }),
    );
    await settled();
    await trial.loseTouch(120_000);
    expect(led.state).toBe("pending");
    await trial.runtime.advance(3_000);
    expect(led.value).toBe("second term");
  });

  it("fails with a store that was out of reach from the first", async () => {
    trial.arbiter.fate = "request broken";
    const led = watch(trial.locks.election("e").lead(() => 1));
    await trial.runtime.advance(11_000);
    expect(led.error).toBeInstanceOf(StoreError);
  });

  it("stops campaigning when its signal aborts", async () => {
    await trial.others.election("e").campaign();
    const controller = new AbortController();
    const led = watch(trial.locks.election("e").lead(() => 1, { signal: controller.signal }));
    await trial.runtime.advance(100);
    const reason = new Error("enough");
    controller.abort(reason);
    await trial.runtime.advance(0);
    expect(led.error).toBe(reason);
  });

  it("does not campaign again after a loss once its signal has aborted", async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const led = watch(
      trial.locks.election("e").lead(
        async () => {
          trial.runtime.block(40_000);
          controller.abort(new Error("enough"));
        },
        { signal },
      ),
    );
    await settled();
    expect(led.error).toMatchObject({ message: "enough" });
  });
});

describe("leader", () => {
  it("is who holds the office, or null", async () => {
    const election = trial.others.election("e");
    expect(await election.leader()).toBeNull();
    const lease = await trial.locks.election("e", { meta: { label: "node-1" } }).campaign();
    await trial.runtime.advance(500);
    const leader = await election.leader();
    expect(leader).toMatchObject({ token: lease.token, meta: { label: "node-1" }, heldMs: 500 });
  });
});

describe("observe", () => {
  /** Collects what an observer of another process sees. */
  function observe(everyMs = 100) {
    const seen: (Leader | null)[] = [];
    const controller = new AbortController();
    const { signal } = controller;
    const done = watch(
      (async () => {
        for await (const leader of trial.locks.election("e").observe({ signal, everyMs })) {
          seen.push(leader);
        }
      })(),
    );
    return { seen, done, stop: () => controller.abort() };
  }

  it("yields the leader or null whenever that changes, and ends with its signal", async () => {
    const { seen, done, stop } = observe();
    await trial.runtime.advance(250);
    expect(seen).toEqual([null]);
    const first = await trial.others.election("e").campaign();
    await trial.runtime.advance(300);
    await first.release();
    await trial.runtime.advance(100);
    const second = await trial.others.election("e").campaign();
    await trial.runtime.advance(300);
    expect(seen.map((leader) => leader?.token)).toEqual([
      undefined,
      first.token,
      undefined,
      second.token,
    ]);
    stop();
    await settled();
    expect(done.state).toBe("resolved");
    await second.release();
    await trial.runtime.advance(0);
    expect(trial.runtime.keepsAlive).toBe(false);
  });

  it("never goes back to a lower token", async () => {
    const { seen, stop } = observe();
    const first = await trial.others.election("e").campaign();
    await trial.runtime.advance(100);
    await first.release();
    const tokens = [first.token + 10n, first.token + 5n, first.token + 10n, first.token + 11n];
    trial.arbiter.impostor = () => {
      const token = Number(tokens.shift() ?? first.token + 11n);
      const about = { mode: "exclusive", weight: 1, limit: 1, meta: "{}", span: 1 } as const;
      const holder = { ...about, token, heldUs: 0, remainingUs: 1 };
      return [{ type: "view", holders: [holder], waiters: [], mark: null }];
    };
    await trial.runtime.advance(500);
    stop();
    const shown = seen.map((leader) => leader?.token).filter((token) => token !== undefined);
    expect(shown).toEqual([first.token, first.token + 10n, first.token + 11n]);
  });

  it("waits out a store that does not answer, and throws what will not pass", async () => {
    const { seen, done } = observe();
    trial.arbiter.next("inspect", "request broken");
    await trial.runtime.advance(250);
    expect(seen).toEqual([null]);
    const error = new StoreError("Not allowed", { outcome: "not_applied", retryable: false });
    trial.arbiter.next("inspect", error);
    await trial.runtime.advance(100);
    expect(done.error).toMatchObject({ retryable: false });
  });

  it("does not sleep on when it is closed while it looks", async () => {
    const { done } = observe(60_000);
    trial.arbiter.latencyMs = 100;
    await settled();
    const closed = watch(trial.locks.close());
    await trial.runtime.advance(300);
    expect(closed.state).toBe("resolved");
    expect(done.error).toMatchObject({ code: "HF_CLOSED" });
    expect(trial.runtime.keepsAlive).toBe(false);
  });

  it("checks how often to look", async () => {
    const { done } = observe(0);
    await settled();
    expect(done.error).toBeInstanceOf(InvalidOptionError);
  });
});
