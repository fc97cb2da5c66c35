import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import { ScriptedStore } from "../../test/fixtures/scripted-store.js";
import type { LockView, Store } from "../contract/store.js";
import { ClosedError, InvalidOptionError, UnsupportedError } from "../errors/index.js";
import { MemorySpace, memoryStore } from "../stores/memory/index.js";
import { Holdfast } from "./holdfast.js";

let trial: LockTrial;

beforeEach(() => {
  trial = new LockTrial();
});

async function listed(options?: { prefix?: string }): Promise<LockView[]> {
  const views: LockView[] = [];
  for await (const view of trial.locks.list(options)) views.push(view);
  return views;
}

describe("names", () => {
  const odd = [
    "",
    "a\ud800",
    "x".repeat(513),
    7 as unknown as string,
    undefined as unknown as string,
  ];

  it.each(odd)("are checked by everything that takes one: %j", async (name) => {
    const rule = { code: "HF_INVALID_OPTION", option: "name" };
    const { locks } = trial;
    for (const make of [
      () => locks.mutex(name),
      () => locks.readWrite(name),
      () => locks.semaphore(name, 1),
      () => locks.election(name),
    ]) {
      expect(make).toThrow(expect.objectContaining(rule));
    }
    for (const ask of [
      async () => locks.once(name, () => {}, { keepMs: 1 }),
      () => locks.inspect(name),
      () => locks.revoke(name, { token: 1n, reason: "r" }),
    ]) {
      await expect(ask()).rejects.toMatchObject(rule);
    }
    expect(trial.arbiter.sent).toEqual([]);
  });

  it("are kept as they are", async () => {
    const name = ' a/b {c} "\u{1f512}"\u0000';
    const lease = await trial.locks.mutex(name).acquire();
    expect(lease.name).toBe(name);
    expect((await trial.others.inspect(name)).name).toBe(name);
    expect(await trial.others.mutex(name).tryAcquire()).toBeNull();
  });
});

describe("defaults", () => {
  it("pass from the Holdfast to its locks to their calls", async () => {
    const own = new LockTrial({ ttlMs: 5_000 });
    const mutex = own.locks.mutex("x", { ttlMs: 8_000 });
    const remaining = [
      (await own.locks.mutex("y").acquire()).remainingMs(),
      (await mutex.acquire()).remainingMs(),
      (await own.locks.mutex("z", { ttlMs: 8_000 }).acquire({ ttlMs: 12_000 })).remainingMs(),
    ];
    expect(remaining.map((ms) => Math.ceil(ms / 1_000))).toEqual([5, 8, 12]);
  });

  it("are checked at once", () => {
    expect(() => new LockTrial({ ttlMs: 1 })).toThrow(InvalidOptionError);
    expect(() => trial.locks.mutex("x", { ttlMs: 1 })).toThrow(InvalidOptionError);
  });
});

describe("an ability that the store lacks", () => {
  it("is refused by name", async () => {
    const store = new ScriptedStore(trial.runtime);
    Object.assign(store, {
      traits: { ...store.traits, modes: ["exclusive"], marks: false, transferable: false },
    });
    const locks = new Holdfast(store);
    expect(() => locks.semaphore("x", 2)).toThrow(UnsupportedError);
    expect(() => locks.readWrite("x")).toThrow("scripted");
    const once = (async () => locks.once("x", () => {}, { keepMs: 1 }))();
    await expect(once).rejects.toBeInstanceOf(UnsupportedError);
    await expect(locks.resume("hf1.x")).rejects.toBeInstanceOf(UnsupportedError);
    expect(() => locks.mutex("x", { transferable: true })).toThrow(UnsupportedError);
    expect(locks.mutex("x").name).toBe("x");
  });
});

describe("inspect and list", () => {
  it("show who holds and who waits", async () => {
    const lease = await trial.others.mutex("job:1").acquire({ meta: { label: "one" } });
    void watch(trial.locks.mutex("job:1").acquire({ meta: { label: "two" } }));
    await trial.runtime.advance(1_000);
    const view = await trial.locks.inspect("job:1");
    expect(view).toMatchObject({ name: "job:1", space: "lock", mark: null });
    expect(view.holders).toMatchObject([
      { token: lease.token, heldMs: 1_000, meta: { label: "one" } },
    ]);
    expect(view.waiters).toMatchObject([{ waitedMs: 1_000, meta: { label: "two" } }]);
  });

  it("show what is in use below a prefix", async () => {
    for (const name of ["job:2", "job:1", "other"]) await trial.others.mutex(name).acquire();
    await trial.others.election("job:3").campaign();
    const names = async (prefix?: string): Promise<string[]> =>
      (await listed(prefix === undefined ? {} : { prefix })).map(({ name }) => name);
    expect(await names("job:")).toEqual(["job:1", "job:2"]);
    expect(await names()).toEqual(["job:1", "job:2", "other"]);
    expect(await names("none")).toEqual([]);
  });
});

it.each([undefined, null, {}, "redis://localhost"])(
  "a value that is no store is refused: %j",
  (given) => {
    expect(() => new Holdfast(given as unknown as Store)).toThrow("Invalid store");
  },
);

describe("revoke", () => {
  it.each(["mutex", "semaphore"] as const)(
    "ends a lease of this process at once, though its message is lost: a %s",
    async (kind) => {
      const lock = kind === "mutex" ? trial.locks.mutex("x") : trial.locks.semaphore("x", 2);
      const [lease, other] = [await lock.acquire(), await lock.tryAcquire()];
      trial.arbiter.pushes = "kept";
      const { signal, token } = lease;
      expect(await trial.locks.revoke("x", { token, reason: "stuck" })).toBe(true);
      expect(signal.reason).toMatchObject({ reason: "revoked", detail: "stuck" });
      if (other) expect(other.state).toBe("held");
    },
  );

  it("compares the token, and says whether it was that one", async () => {
    const lease = await trial.others.mutex("x").acquire();
    const { token } = lease;
    expect(await trial.locks.revoke("x", { token: token - 1n, reason: "old" })).toBe(false);
    expect(lease.state).toBe("held");
    expect(await trial.locks.revoke("x", { token, reason: "stuck" })).toBe(true);
    await trial.runtime.advance(0);
    expect(lease.state).toBe("lost");
  });

  it.each([
    [{ reason: "r" }, "token"],
    [{ token: 1, reason: "r" }, "token"],
    [{ token: 1n }, "reason"],
    [{ token: 1n, reason: "" }, "reason"],
    [{ token: 1n, reason: "ä".repeat(513) }, "reason"],
    [undefined, "token"],
  ])("needs a token and a reason: %o", async (options, option) => {
    const asked = trial.locks.revoke("x", options as { token: bigint; reason: string });
    await expect(asked).rejects.toMatchObject({ option });
  });
});

describe("resume", () => {
  it("goes on with a lease of another process, which lets go of it", async () => {
    const lease = await trial.others.mutex("x").acquire({ transferable: true });
    const handle = lease.detach();
    const resumed = await trial.locks.resume(handle);
    expect(resumed).toMatchObject({ name: "x", token: lease.token, state: "held" });
    await trial.others.close();
    await trial.runtime.advance(120_000);
    expect(resumed?.state).toBe("held");
    expect(trial.locks.held()).toEqual([resumed]);
    expect(await resumed?.release()).toBe(true);
    expect(await trial.locks.resume(handle)).toBeNull();
  });

  it.each(["held", "detached"])("ends the lease that this process has: %s", async (state) => {
    const lease = await trial.locks.mutex("x").acquire({ transferable: true });
    const handle = state === "detached" ? lease.detach() : (lease.handle as string);
    const { signal } = lease;
    const resumed = await trial.locks.resume(handle);
    expect([lease.state, resumed?.state]).toEqual(["lost", "held"]);
    expect(signal.reason).toMatchObject({ reason: "replaced" });
    expect(await lease.release()).toBe(false);
    await trial.runtime.advance(60_000);
    expect(trial.locks.held()).toEqual([resumed]);
    // The client hears of the revocation of the lease that is left.
    await trial.others.revoke("x", { token: lease.token, reason: "stuck" });
    await trial.runtime.advance(1);
    expect(resumed?.state).toBe("lost");
  });

  it("hides a malformed handle", async () => {
    const asked = trial.locks.resume("hf1.c2VjcmV0");
    await expect(asked).rejects.toMatchObject({ option: "handle", value: "(hidden)" });
  });
});

describe("close", () => {
  it("releases what is held, ends what waits, and leaves nothing", async () => {
    const held = await trial.locks.mutex("x").acquire();
    await trial.others.mutex("y").acquire();
    const waiting = watch(trial.locks.mutex("y").acquire());
    const queued = watch(trial.locks.mutex("x").acquire());
    const set = watch(trial.locks.all([trial.locks.mutex("y"), trial.locks.mutex("z")]).acquire());
    await settled();
    await trial.locks.close();
    expect(held.state).toBe("released");
    for (const one of [waiting, queued, set]) expect(one.error).toBeInstanceOf(ClosedError);
    expect(trial.locks.held()).toEqual([]);
    expect(trial.server.view("l:x")).toMatchObject({ holders: [], waiters: [] });
    expect(trial.server.view("l:y").waiters).toEqual([]);
    expect(trial.arbiter.isClosed).toBe(true);
    await trial.others.close();
    await trial.runtime.advance(10_000);
    expect(trial.runtime.alarms).toBe(0);
  });

  it("refuses every later call", async () => {
    const { locks } = trial;
    const mutex = locks.mutex("x");
    await locks.close();
    for (const ask of [
      () => mutex.acquire(),
      () => mutex.tryAcquire(),
      () => mutex.run(() => {}),
      () => locks.all([mutex]).acquire(),
      () => locks.election("e").campaign(),
      () => locks.election("e").leader(),
      () => locks.once("o", () => {}, { keepMs: 1 }),
      () => locks.inspect("x"),
      () => listed(),
      () => locks.revoke("x", { token: 1n, reason: "r" }),
      () => locks.resume("hf1.x"),
    ]) {
      await expect(ask()).rejects.toBeInstanceOf(ClosedError);
    }
  });

  it("is done once, however often it is called, and at the end of a block", async () => {
    const { locks } = trial;
    const first = locks.close();
    await Promise.all([first, locks.close(), locks[Symbol.asyncDispose]()]);
    expect(trial.arbiter.isClosed).toBe(true);
  });

  it("tells work that is still under way, whose run does not count as done", async () => {
    let signal: AbortSignal | undefined;
    let end: () => void = () => {};
    const run = watch(
      trial.locks.mutex("x").run((lease) => {
        ({ signal } = lease);
        return new Promise<void>((resume) => {
          end = resume;
        });
      }),
    );
    await settled();
    await trial.locks.close();
    expect(signal?.aborted).toBe(true);
    end();
    await settled();
    expect(run.error).toMatchObject({ code: "HF_LEASE_LOST", reason: "session_ended" });
  });
});

describe("close, while others are at work", () => {
  it("gives back what is granted in the same answer as a release", async () => {
    const { locks, arbiter, server } = trial;
    const lease = await locks.mutex("a").acquire();
    let leftAtClose: number | undefined;
    arbiter.close = async () => {
      leftAtClose = server.ledger.size;
    };
    const asked = watch(locks.mutex("b").tryAcquire());
    const released = lease.release();
    const closed = watch(locks.close());
    expect(await released).toBe(true);
    await trial.runtime.advance(0);
    expect(asked.error).toBeInstanceOf(ClosedError);
    expect(closed.state).toBe("resolved");
    expect(leftAtClose).toBe(0);
  });

  it("gives back what a resume brings in meanwhile", async () => {
    const space = new MemorySpace();
    const giver = new Holdfast(memoryStore({ space }));
    const taker = new Holdfast(memoryStore({ space }));
    const handle = (await giver.mutex("h").acquire({ transferable: true })).detach();
    const resumed = taker.resume(handle);
    const closed = taker.close();
    await expect(resumed).rejects.toMatchObject({ code: "HF_CLOSED" });
    await closed;
    expect((await giver.inspect("h")).holders).toEqual([]);
    await giver.close();
  });

  it("is one, also for a listener that closes in its turn", async () => {
    const locks = new Holdfast(memoryStore());
    const lease = await locks.mutex("a").acquire();
    let inner: Promise<void> | undefined;
    lease.signal.addEventListener("abort", () => {
      inner = locks.close();
    });
    const outer = locks.close();
    await outer;
    expect(inner).toBe(outer);
  });

  it("lets a store be used again whose options were refused", () => {
    const store = memoryStore();
    expect(() => new Holdfast(store, { ttlMs: -1 })).toThrow(InvalidOptionError);
    expect(() => new Holdfast(store)).not.toThrow();
  });
});
