/** Stopped and killed processes, and replaced lock files. */
import { readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Holdfast, LeaseLostError } from "../../src/index.js";
import { openSqlite } from "../../src/stores/file/client.js";
import { writerPid } from "../../src/stores/file/errors.js";
import { machineIdentity } from "../../src/stores/file/machine-runtime.js";
import { type ControlledProcess, startProcess } from "../faults/process.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { waitUntil } from "../servers/wait-until.js";
import { untilWaiting } from "../stores/trial.js";
import { FileTrial, failureOf } from "./trial.js";

const SHARED = Symbol.for("holdfast.sqlite-library");

interface Library {
  readonly Database: new (path: string) => { exec(sql: string): void };
}

let trial: FileTrial;
beforeEach(() => {
  trial = new FileTrial();
});
afterEach(() => trial.close());

/** Starts a program on the lock file. */
function start(program: URL): ControlledProcess {
  return startProcess(program, { args: [trial.path] });
}

describe("a process stopped inside a transaction", () => {
  it("blocks no event loop, and the timeout error names the process", async () => {
    const locks = trial.open({ storeTimeoutMs: 1_500 });
    await (await locks.mutex("x").acquire()).release();
    await using holder = start(new URL("./transaction.mjs", import.meta.url));
    await holder.receive();
    await holder.pause();
    await expectNamed(locks, holder.pid);

    // The process continues: nothing is broken, and the next acquire succeeds.
    const acquiring = locks.mutex("x").acquire();
    await holder.send({});
    holder.resume();
    expect(await (await acquiring).release()).toBe(true);
  });

  it("delays a release until it continues", async () => {
    const locks = trial.open();
    const lease = await locks.mutex("x").acquire();
    await using holder = start(new URL("./transaction.mjs", import.meta.url));
    await holder.receive();
    const releasing = lease.release();
    await holder.send({});
    expect(await releasing).toBe(true);
    const next = await locks.mutex("x").tryAcquire();
    expect(await next?.release()).toBe(true);
    expect((await locks.inspect("x")).holders).toEqual([]);
  });

  it("while it takes a lock, is named too, and continues unharmed", async () => {
    await using locker = start(new URL("./locker.mjs", import.meta.url));
    await locker.receive();
    const locks = trial.open({ storeTimeoutMs: 1_500 });
    for (await locker.pause(); !isWriter(locker.pid); await locker.pause()) locker.resume();
    await expectNamed(locks, locker.pid);
    await locker.send({});
    locker.resume();
    expect(await locker.exited).toEqual({ code: 0, signal: null });
    expect(await (await locks.mutex("x").acquire()).release()).toBe(true);
  });

  /** Whether the process keeps others from writing. One that only checkpoints does not. */
  function isWriter(pid: number): boolean {
    if (writerPid(trial.path) !== pid) return false;
    const database = openSqlite(trial.path);
    try {
      database.exec("BEGIN IMMEDIATE");
      return false;
    } catch {
      return true;
    } finally {
      database.close();
    }
  }

  /** Checks that an acquire fails in time, names the process, and keeps the event loop free. */
  async function expectNamed(locks: Holdfast, pid: number): Promise<void> {
    const gapsMs: number[] = [];
    let lastMs = performance.now() - waitedForProcessorMs();
    const beat = setInterval(() => {
      const nowMs = performance.now() - waitedForProcessorMs();
      gapsMs.push(nowMs - lastMs);
      lastMs = nowMs;
    }, 1);
    const error = await failureOf(locks.mutex("x").acquire());
    clearInterval(beat);
    expect(error.message).toContain(`process ${pid}`);
    expect(gapsMs.length).toBeGreaterThan(20);
    // A busy machine delays the loop for a moment; a wait inside SQLite would block it for long.
    const sumMs = (gaps: readonly number[]): number => gaps.reduce((sum, gap) => sum + gap, 0);
    expect(sumMs(gapsMs.filter((gap) => gap > 50))).toBeLessThan(sumMs(gapsMs) / 4);
  }
});

/**
 * How long this thread waited for a processor on a busy machine, which no event loop can avoid; 0
 * where the system does not report it.
 */
function waitedForProcessorMs(): number {
  try {
    return Number(readFileSync("/proc/thread-self/schedstat", "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0;
  }
}

describe("a replaced lock file", () => {
  it("when deleted: leases are lost, waiters wake up, and tokens still rise", async () => {
    const [a, b] = [trial.open({ ttlMs: 2_000 }), trial.open()];
    const lease = await a.mutex("x").acquire();
    const waiting = b.mutex("x").acquire();
    await untilWaiting(a, "x");
    rmSync(trial.path);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    await waitUntil(() => lease.state === "lost", { what: "the loss" });
    expect((lease.signal.reason as LeaseLostError).reason).toMatch(/missing|replaced/);
    expect(await lease.release()).toBe(false);
    expect(await next.release()).toBe(true);
    checkIntegrity();
  });

  it("when replaced by another file: the leases of the first are lost", async () => {
    const locks = trial.open({ ttlMs: 900 });
    const lease = await locks.mutex("x").acquire();
    const other = join(trial.folder, "other.db");
    const elsewhere = trial.open({}, other);
    await (await elsewhere.mutex("x").acquire()).release();
    await elsewhere.close();
    trial.edit("PRAGMA wal_checkpoint(TRUNCATE)", other);
    renameSync(other, trial.path);
    await waitUntil(() => lease.state === "lost", { what: "the loss" });
    const next = await locks.mutex("x").acquire({ ttlMs: 30_000 });
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe(true);
    checkIntegrity();
  });

  it("when the whole folder is deleted: it is created again", async () => {
    const locks = trial.open();
    await locks.mutex("x").acquire();
    rmSync(trial.folder, { recursive: true });
    const next = await locks.mutex("y").acquire();
    expect(await next.release()).toBe(true);
  });

  function checkIntegrity(): void {
    const database = openSqlite(trial.path);
    expect(database.all("PRAGMA integrity_check", [])).toEqual([["ok"]]);
    database.close();
  }
});

describe("a file of another boot", () => {
  const FOREIGN = "UPDATE machine SET identity = 'another boot'";

  it("without leases is taken over at once, and tokens still rise", async () => {
    const locks = trial.open();
    const lease = await locks.mutex("x").acquire();
    await lease.release();
    trial.edit(`${FOREIGN}; UPDATE name SET body = body + 1000000000000 WHERE key = ''`);
    const next = await trial.open().mutex("x").acquire();
    expect(next.token).toBeGreaterThan(lease.token + 10n ** 12n);
    expect(identity()).toBe(machineIdentity());
  });

  it("with leases is taken over after their ttl", async () => {
    const before = await trial.open().mutex("x").acquire({ ttlMs: 3_000, renew: false });
    trial.edit(FOREIGN);
    const startMs = performance.now();
    const locks = trial.open({ ttlMs: 3_000, storeTimeoutMs: 2_500 });
    await expect(locks.mutex("y").tryAcquire()).rejects.toThrow("grants no free lock");
    const lease = await locks.mutex("x").acquire();
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(3_000);
    expect(lease.token).toBeGreaterThan(before.token);
    expect(identity()).toBe(machineIdentity());
  });

  it("keeps the mark of a once by the wall clock", async () => {
    const locks = trial.open();
    await locks.once("report", () => 1, { keepMs: 60_000 });
    trial.edit(FOREIGN);
    expect(await trial.open().once("report", () => 2, { keepMs: 60_000 })).toMatchObject({
      ran: false,
    });
  });

  it("with leases that are renewed is refused, because two machines share it", async () => {
    await trial.open().mutex("x").acquire({ ttlMs: 60_000 });
    trial.edit(FOREIGN);
    const locks = trial.open();
    await expect(locks.mutex("y").tryAcquire()).rejects.toThrow("grants no free lock");
    trial.edit("UPDATE name SET body = body + 1 WHERE key = ''");
    // Every request is refused, not only the first one.
    for (const name of ["y", "z"]) {
      const error = await failureOf(locks.mutex(name).acquire());
      expect(error.message).toContain("one machine");
      expect(error.retryable).toBe(false);
    }
  });

  it("with leases does not list its locks, and says until when", async () => {
    await trial.open().mutex("x").acquire({ ttlMs: 60_000, renew: false });
    trial.edit(FOREIGN);
    const error = await failureOf(trial.open().list().next());
    expect(error.message).toContain("another boot of this machine");
    expect(error.retryable).toBe(true);
  });

  it("keeps nobody from writing when its watch cannot be stored", async () => {
    const fault = failCommits();
    try {
      const locks = trial.open();
      await locks.mutex("x").acquire({ ttlMs: 60_000, renew: false });
      trial.edit(FOREIGN);
      fault.isOn = true;
      const error = await failureOf(locks.mutex("y").tryAcquire());
      expect(error.message).toContain("disk I/O error");
      // No transaction is left open.
      trial.edit("BEGIN IMMEDIATE; COMMIT");
    } finally {
      fault.end();
    }
  });

  /** Makes each COMMIT of this process fail while `isOn`; one in the background is no exception. */
  function failCommits(): { isOn: boolean; end(): void } {
    const shared = globalThis as { [SHARED]?: Library };
    // Loads the library.
    openSqlite(":memory:").close();
    const library = shared[SHARED] as Library;
    const fault = {
      isOn: false,
      end: () => {
        shared[SHARED] = library;
      },
    };
    class Database extends library.Database {
      override exec(sql: string): void {
        if (sql === "COMMIT" && fault.isOn) throw new Error("disk I/O error");
        super.exec(sql);
      }
    }
    shared[SHARED] = { ...library, Database };
    return fault;
  }

  function identity(): unknown {
    const database = openSqlite(trial.path);
    const row = database.get("SELECT identity FROM machine", []);
    database.close();
    return row?.[0];
  }
});

it("grants the lock at once when the first waiter was killed", async () => {
  const locks = trial.open();
  const lease = await locks.mutex("x").acquire();
  await using child = start(new URL("./waiter.mjs", import.meta.url));
  await untilWaiting(locks, "x");
  const mine = trial.open().mutex("x").acquire();
  await untilWaiting(locks, "x", 2);
  await child.kill();
  const watch = new Stopwatch();
  await lease.release();
  await (await mine).release();
  watch.expectLessThan(1_000);
});

it("keeps the order of requests for a name that was just handed to another process", async () => {
  const locks = trial.open({ fairness: "strict" });
  const lease = await locks.mutex("x").acquire();
  await using child = start(new URL("./waiter.mjs", import.meta.url));
  await untilWaiting(locks, "x");
  await lease.release();
  const granted: number[] = [];
  const requests: Promise<void>[] = [];
  // Some requests come while this process waits 1 ms after the handoff, some later.
  for (const endMs = performance.now() + 5; performance.now() < endMs; ) {
    const number = requests.length;
    const asked = locks.mutex("x").run(() => void granted.push(number));
    requests.push(asked);
    await new Promise((resume) => setImmediate(resume));
  }
  await child.receive();
  const { holders } = await locks.inspect("x");
  await locks.revoke("x", { token: holders[0]?.token ?? 0n, reason: "it keeps the lock" });
  await Promise.all(requests);
  expect(granted).toEqual(requests.map((_, number) => number));
});

it("does not starve the event loop of a program that locks without a pause", async () => {
  const locks = trial.open();
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  }, 50);
  for (let turn = 0; !isOver && turn < 20_000; turn += 1) await locks.mutex("x").run(() => {});
  expect(isOver, "the timer fired").toBe(true);
});
