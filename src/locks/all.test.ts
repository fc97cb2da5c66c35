import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { AcquireTimeoutError, InvalidOptionError, LeaseLostError } from "../errors/index.js";
import type { Lock } from "./lock.js";

let trial: LockTrial;

const mutexes = (...names: string[]): Lock[] => names.map((name) => trial.locks.mutex(name));
const taken = (): string[] => trial.arbiter.sentOf("acquire").map(({ key }) => key.slice(2));

beforeEach(() => {
  trial = new LockTrial();
});

describe("several locks", () => {
  it("are taken in the order of the bytes of their names, and held together", async () => {
    const astral = "\u{1f512}";
    const set = await trial.locks.all(mutexes("b", astral, "a", "\uff5e", "B")).acquire();
    expect(taken()).toEqual(["B", "a", "b", "\uff5e", astral]);
    expect(set.leases.map(({ name }) => name)).toEqual(taken());
    expect(set.state).toBe("held");
    expect(set.tokenOf("a")).toBe(set.leases[1]?.token);
    expect(() => set.tokenOf("c")).toThrow(InvalidOptionError);
    expect(await set.release()).toBe(true);
    expect(set.state).toBe("released");
    expect(trial.server.ledger.size).toBe(0);
  });

  it("may be of all kinds, and nested: they are flattened", async () => {
    const { read } = trial.locks.readWrite("r");
    const inner = trial.locks.all([...mutexes("c"), read]);
    const set = await trial.locks
      .all([inner, trial.locks.semaphore("s", 3), ...mutexes("a")])
      .acquire();
    expect(taken()).toEqual(["a", "c", "r", "s"]);
    expect((await trial.others.readWrite("r").read.tryAcquire())?.state).toBe("held");
    await set.release();
  });

  it("keep the defaults of a set within the set, below those of the set around it", async () => {
    const inner = trial.locks.all(mutexes("a", "b"), { ttlMs: 7_000, meta: { label: "inner" } });
    await trial.locks.all([inner, ...mutexes("c")], { meta: { label: "outer" } }).acquire();
    const acquires = trial.arbiter.sentOf("acquire");
    expect(acquires.map(({ ttlUs }) => ttlUs)).toEqual([7_000_000, 7_000_000, 30_000_000]);
    for (const { meta } of acquires) expect(JSON.parse(meta)).toMatchObject({ label: "outer" });
  });

  it("may be given by name, and tried: then the holder in the way is told", async () => {
    const set = trial.locks.all(["a", "b"]);
    expect(await set.tryRun((leases) => leases.leases.length)).toEqual({ ran: true, value: 2 });
    await trial.others.mutex("b").acquire({ meta: { label: "other" } });
    const holder = { meta: { label: "other" } };
    expect(await set.tryRun(() => {})).toMatchObject({ ran: false, holder });
    expect(await set.tryAcquire()).toBeNull();
    expect(await set.isHeld()).toBe(true);
    expect(await trial.others.mutex("a").isHeld()).toBe(false);
  });

  it("come all or not at all", async () => {
    const held = await trial.others.mutex("b").acquire();
    expect(await trial.locks.all(mutexes("a", "b", "c")).tryAcquire()).toBeNull();
    expect((await trial.others.mutex("a").tryAcquire())?.state).toBe("held");
    expect(taken()).toEqual(["a", "b"]);
    await held.release();
  });

  it("cannot wait for each other in a circle", async () => {
    const done: string[] = [];
    const runs = [
      trial.locks.all(mutexes("a", "b")).run(() => done.push("one")),
      trial.others
        .all([trial.others.mutex("b"), trial.others.mutex("a")])
        .run(() => done.push("other")),
    ];
    await trial.runtime.advance(100);
    await Promise.all(runs);
    expect(done.sort()).toEqual(["one", "other"]);
  });
});

describe("waitMs", () => {
  it("is for all of them together", async () => {
    const [a, b] = [
      await trial.others.mutex("a").acquire(),
      await trial.others.mutex("b").acquire(),
    ];
    const asked = watch(trial.locks.all(mutexes("a", "b")).acquire({ waitMs: 1_000 }));
    await trial.runtime.advance(800);
    await a.release();
    await trial.runtime.advance(199);
    expect(asked.state).toBe("pending");
    await trial.runtime.advance(1);
    expect(asked.error).toBeInstanceOf(AcquireTimeoutError);
    expect(asked.error).toMatchObject({ waitMs: 1_000, lockName: "b", holder: { token: b.token } });
    await trial.runtime.advance(0);
    expect((await trial.others.inspect("a")).holders).toEqual([]);
    await b.release();
  });

  it("comes from the defaults of the Holdfast, or of these locks", async () => {
    const brief = new LockTrial({ waitMs: 300 });
    await brief.others.mutex("a").acquire();
    const both = (): Lock[] => [brief.locks.mutex("a"), brief.locks.mutex("b")];
    const byHoldfast = watch(brief.locks.all(both()).acquire());
    const bySet = watch(brief.locks.all(both(), { waitMs: 100 }).acquire());
    await brief.runtime.advance(100);
    expect([byHoldfast.state, bySet.state]).toEqual(["pending", "rejected"]);
    await brief.runtime.advance(200);
    expect(byHoldfast.error).toBeInstanceOf(AcquireTimeoutError);
  });

  it("is that of these locks where a call gives it as undefined", async () => {
    await trial.others.mutex("a").acquire();
    const set = trial.locks.all(mutexes("a"), { waitMs: 100 });
    const asked = watch(set.acquire({ waitMs: undefined }));
    await trial.runtime.advance(200);
    expect(asked.error).toMatchObject({ waitMs: 100 });
  });

  it.each([-1, Number.NaN, "5"])("is checked: %s", async (waitMs) => {
    const asked = trial.locks.all(mutexes("a")).acquire({ waitMs: waitMs as number });
    await expect(asked).rejects.toMatchObject({ option: "waitMs" });
    expect(taken()).toEqual([]);
  });
});

describe("one that is lost", () => {
  it("means that the whole is lost", async () => {
    const set = await trial.locks.all(mutexes("a", "b")).acquire();
    const { signal } = set;
    await trial.others.revoke("b", { token: set.tokenOf("b"), reason: "stuck" });
    await trial.runtime.advance(0);
    expect(set.state).toBe("lost");
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LeaseLostError);
    expect(() => set.assertHeld()).toThrow(LeaseLostError);
    expect(await set.release()).toBe(false);
    expect(trial.server.view("l:a").holders).toEqual([]);
  });

  it("while the other locks are waited for is asked for again", async () => {
    const held = await trial.others.mutex("b").acquire({ ttlMs: 300_000 });
    const asked = watch(trial.locks.all(mutexes("a", "b")).acquire({ renew: false }));
    await trial.runtime.advance(40_000);
    await held.release();
    await trial.runtime.advance(0);
    expect(taken().filter((name) => name === "a").length).toBe(2);
    expect(asked.value?.state).toBe("held");
    expect(asked.value?.remainingMs()).toBeGreaterThan(29_000);
  });

  it("keeps no caller waiting for its release", async () => {
    const held = await trial.others.mutex("b").acquire();
    const asked = watch(trial.locks.all(mutexes("a", "b")).acquire({ waitMs: 600 }));
    await trial.runtime.advance(550);
    const [holder] = (await trial.others.inspect("a")).holders;
    await trial.others.revoke("a", { token: holder?.token ?? 0n, reason: "test" });
    await held.release();
    trial.arbiter.fate = "request lost";
    await trial.runtime.advance(300);
    expect(asked.state).toBe("rejected");
  });

  it("is the earliest deadline that counts", async () => {
    const [a, b] = [trial.locks.mutex("a", { ttlMs: 5_000 }), trial.locks.mutex("b")];
    const set = await trial.locks.all([a, b]).acquire();
    expect(set.remainingMs()).toBeLessThan(5_000);
    await trial.runtime.advance(60_000);
    expect(set.state).toBe("held");
    await set.renew();
  });
});

describe("run", () => {
  it("releases all in the end, and tells a loss", async () => {
    const value = await trial.locks.all(mutexes("a", "b")).run((set) => set.leases.length);
    expect(value).toBe(2);
    expect(trial.server.ledger.size).toBe(0);
    const run = watch(
      trial.locks.all(mutexes("a", "b")).run(() => {
        trial.runtime.block(40_000);
        return "late";
      }),
    );
    await settled();
    expect(run.error).toMatchObject({ code: "HF_LEASE_LOST", value: "late" });
  });
});

describe("a set that cannot be held together", () => {
  it.each([
    ["nothing", () => []],
    ["no list", () => undefined],
    ["no locks", () => [{}]],
    ["the same lock twice", () => mutexes("a", "b", "a")],
    ["both sides of one lock", () => Object.values(trial.locks.readWrite("a")).slice(1)],
    ["a lock of another Holdfast", () => [trial.others.mutex("a")]],
    ["one nested in another", () => [trial.others.all([trial.others.mutex("a")])]],
    ["the same lock, nested", () => [trial.locks.all(mutexes("a")), ...mutexes("a")]],
  ])("is refused: %s", (_, make) => {
    const locks = make() as Lock[];
    expect(() => trial.locks.all(locks)).toThrow(InvalidOptionError);
  });
});
