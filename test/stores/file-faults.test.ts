import { spawnSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AcquireOptions,
  connect,
  Holdfast,
  type LeaseLostError,
  StoreError,
} from "../../src/index.js";
import { fileStore } from "../../src/stores/file/index.js";
import { defaultPath } from "../../src/stores/file/lock-folder.js";
import { machineIdentity } from "../../src/stores/file/machine-identity.js";
import { openSqlite } from "../../src/stores/file/sqlite.js";
import { writerPid } from "../../src/stores/file/writer-pid.js";
import { startProcess } from "../faults/process.js";
import { waitUntil } from "../servers/wait-until.js";

const isRoot = process.getuid?.() === 0;

let folder: string;
let path: string;
const opened: Holdfast[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  path = join(folder, "locks.db");
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((locks) => locks.close()));
  rmSync(folder, { recursive: true, force: true });
});

function open(options: AcquireOptions = {}, at: string = path): Holdfast {
  const locks = new Holdfast(fileStore({ path: at }), options);
  opened.push(locks);
  return locks;
}

async function failureOf(work: Promise<unknown>): Promise<StoreError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

/** Changes the file by SQL, like another machine or a person. */
function edit(sql: string, at: string = path): void {
  const database = openSqlite(at);
  database.exec(`PRAGMA busy_timeout = 1000; ${sql}`);
  database.close();
}

describe("a process stopped inside a transaction", () => {
  it("blocks no event loop, and the timeout error names the process", async () => {
    const locks = open({ storeTimeoutMs: 1_500 });
    await (await locks.mutex("x").acquire()).release();
    const holder = startProcess(new URL("./file-transaction.mjs", import.meta.url), {
      args: [path],
    });
    await holder.receive();
    await holder.pause();
    await expectNamed(locks, holder.pid);

    // The process continues: nothing is broken, and the next acquire succeeds.
    const acquiring = locks.mutex("x").acquire();
    await holder.send({});
    holder.resume();
    expect(await (await acquiring).release()).toBe(true);
    await holder[Symbol.asyncDispose]();
  });

  it("delays a release until it continues", async () => {
    const locks = open();
    const lease = await locks.mutex("x").acquire();
    await using holder = startProcess(new URL("./file-transaction.mjs", import.meta.url), {
      args: [path],
    });
    await holder.receive();
    const releasing = lease.release();
    await holder.send({});
    expect(await releasing).toBe(true);
    const next = await locks.mutex("x").tryAcquire();
    expect(await next?.release()).toBe(true);
    expect((await locks.inspect("x")).holders).toEqual([]);
  });

  it("while it takes a lock, is named too, and continues unharmed", async () => {
    await using locker = startProcess(new URL("./file-locker.mjs", import.meta.url), {
      args: [path],
    });
    await locker.receive();
    const locks = open({ storeTimeoutMs: 1_500 });
    for (await locker.pause(); writerPid(path) !== locker.pid; await locker.pause()) {
      locker.resume();
    }
    await expectNamed(locks, locker.pid);
    locker.resume();
    expect(await (await locks.mutex("x").acquire()).release()).toBe(true);
  });

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
    const [a, b] = [open({ ttlMs: 900 }), open({ ttlMs: 900 })];
    const lease = await a.mutex("x").acquire();
    const waiting = b.mutex("x").acquire();
    await waitUntil(async () => (await a.inspect("x")).waiters.length === 1, { what: "a waiter" });
    rmSync(path);
    const next = await waiting;
    expect(next.token).toBeGreaterThan(lease.token);
    await waitUntil(() => lease.state === "lost", { what: "the loss" });
    expect((lease.signal.reason as LeaseLostError).reason).toMatch(/missing|replaced/);
    expect(await lease.release()).toBe(false);
    expect(await next.release()).toBe(true);
    checkIntegrity();
  });

  it("when replaced by another file: the leases of the first are lost", async () => {
    const locks = open({ ttlMs: 900 });
    const lease = await locks.mutex("x").acquire();
    const other = join(folder, "other.db");
    const elsewhere = open({}, other);
    await (await elsewhere.mutex("x").acquire()).release();
    await elsewhere.close();
    edit("PRAGMA wal_checkpoint(TRUNCATE)", other);
    renameSync(other, path);
    await waitUntil(() => lease.state === "lost", { what: "the loss" });
    const next = await locks.mutex("x").acquire();
    expect(next.token).toBeGreaterThan(lease.token);
    expect(await next.release()).toBe(true);
    checkIntegrity();
  });

  it("when the whole folder is deleted: it is created again", async () => {
    const locks = open();
    await locks.mutex("x").acquire();
    rmSync(folder, { recursive: true });
    const next = await locks.mutex("y").acquire();
    expect(await next.release()).toBe(true);
  });

  function checkIntegrity(): void {
    const database = openSqlite(path);
    expect(database.all("PRAGMA integrity_check", [])).toEqual([["ok"]]);
    database.close();
  }
});

describe("a file of another boot", () => {
  const FOREIGN = "UPDATE machine SET identity = 'another boot'";

  it("without leases is taken over at once, and tokens still rise", async () => {
    const locks = open();
    const lease = await locks.mutex("x").acquire();
    await lease.release();
    edit(`${FOREIGN}; UPDATE space SET token = token + 1e12`);
    const next = await open().mutex("x").acquire();
    expect(next.token).toBeGreaterThan(lease.token + 10n ** 12n);
    expect(identity()).toBe(machineIdentity());
  });

  it("with leases is taken over after their ttl", async () => {
    const before = await open().mutex("x").acquire({ ttlMs: 700, renew: false });
    edit(FOREIGN);
    const startMs = performance.now();
    const locks = open({ ttlMs: 700, storeTimeoutMs: 600 });
    expect(await locks.mutex("y").tryAcquire()).toBeNull();
    const lease = await locks.mutex("x").acquire();
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(700);
    expect(lease.token).toBeGreaterThan(before.token);
    expect(identity()).toBe(machineIdentity());
  });

  it("keeps the mark of a once by the wall clock", async () => {
    const locks = open();
    await locks.once("report", () => 1, { keepMs: 60_000 });
    edit(FOREIGN);
    expect(await open().once("report", () => 2, { keepMs: 60_000 })).toMatchObject({ ran: false });
  });

  it("with leases that are renewed is refused, because two machines share it", async () => {
    await open().mutex("x").acquire({ ttlMs: 60_000 });
    edit(FOREIGN);
    const locks = open();
    expect(await locks.mutex("y").tryAcquire()).toBeNull();
    edit("UPDATE space SET token = token + 1");
    // Every request is refused, not only the first one.
    for (const name of ["y", "z"]) {
      const error = await failureOf(locks.mutex(name).acquire());
      expect(error.message).toContain("one machine");
      expect(error.retryable).toBe(false);
    }
  });

  function identity(): unknown {
    const database = openSqlite(path);
    const row = database.get("SELECT identity FROM machine", []);
    database.close();
    return row?.[0];
  }
});

describe("a place that cannot be used", () => {
  it("is refused when another user owns it", async (context) => {
    if (!isRoot) return context.skip("only root can give a folder away");
    const theirs = join(folder, "theirs");
    mkdirSync(theirs);
    chownSync(theirs, 12_345, 12_345);
    const error = await failureOf(open({}, join(theirs, "locks.db")).mutex("x").acquire());
    expect(error.message).toContain("belongs to another user");
    expect(readdirSync(theirs)).toEqual([]);
  });

  it("is refused when it cannot be written", async () => {
    writeFileSync(join(folder, "file"), "");
    const error = await failureOf(
      open({}, join(folder, "file", "locks.db"))
        .mutex("x")
        .acquire(),
    );
    expect(error.message).toContain("cannot be used for locks");
    expect(error.retryable).toBe(false);
  });

  it("is refused when the file is damaged, and the file stays as it is", async () => {
    const text = "this is no database ".repeat(500);
    writeFileSync(path, text);
    const error = await failureOf(open().mutex("x").acquire());
    expect(error.message).toMatch(/damaged.*move it away/s);
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("is refused when a newer version wrote the file", async () => {
    const locks = open();
    await (await locks.mutex("x").acquire()).release();
    await locks.close();
    edit("PRAGMA user_version = 99");
    const error = await failureOf(open().mutex("y").acquire());
    expect(error.message).toContain("version 99");
  });
});

it("reports a full disk, and works again when there is space", async (context) => {
  if (!isRoot) return context.skip("only root can mount a small file system");
  const disk = join(folder, "disk");
  mkdirSync(disk);
  const mount = spawnSync("/bin/mount", ["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", disk]);
  if (mount.status !== 0) return context.skip(`no mount: ${mount.stderr}`);
  try {
    const locks = open({}, join(disk, "locks.db"));
    await (await locks.mutex("x").acquire()).release();
    const filler = join(disk, "filler");
    expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow();
    const failing = (async () => {
      for (let index = 0; index < 200; index += 1) await locks.mutex(`n${index}`).acquire();
    })();
    const error = await failureOf(failing);
    expect(error.message).toContain("full");
    rmSync(filler);
    const lease = await locks.mutex("after").acquire();
    expect(await lease.release()).toBe(true);
    await locks.close();
  } finally {
    spawnSync("/bin/umount", ["-l", disk]);
  }
});

it("leaves no socket, and removes the sockets of killed processes", async () => {
  const wake = `${path}-wake`;
  mkdirSync(wake, { mode: 0o700 });
  const dead = join(wake, "dead");
  const script =
    "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))";
  spawnSync(process.execPath, ["-e", script, dead]);
  const live = createServer().listen(join(wake, "live"));
  expect(existsSync(dead)).toBe(true);
  const locks = open();
  await (await locks.mutex("x").acquire()).release();
  await waitUntil(() => !existsSync(dead), { what: "the socket of the killed process is removed" });
  expect(readdirSync(wake)).toHaveLength(2);
  await locks.close();
  expect(readdirSync(wake)).toEqual(["live"]);
  live.close();
});

it("grants the lock at once when the first waiter was killed", async () => {
  const locks = open();
  const lease = await locks.mutex("x").acquire();
  const child = startProcess(new URL("./file-waiter.mjs", import.meta.url), { args: [path] });
  await waitUntil(async () => (await locks.inspect("x")).waiters.length === 1, {
    what: "the acquire waits",
  });
  const mine = open().mutex("x").acquire();
  await waitUntil(async () => (await locks.inspect("x")).waiters.length === 2, {
    what: "two waiters",
  });
  await child.kill();
  const startMs = performance.now();
  await lease.release();
  await (await mine).release();
  expect(performance.now() - startMs).toBeLessThan(1_000);
});

it("keeps the order of requests for a name that was just handed to another process", async () => {
  const locks = open({ fairness: "strict" });
  const lease = await locks.mutex("x").acquire();
  const child = startProcess(new URL("./file-waiter.mjs", import.meta.url), { args: [path] });
  await waitUntil(async () => (await locks.inspect("x")).waiters.length === 1, {
    what: "the acquire waits",
  });
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
  await child.kill();
});

it("does not starve the event loop of a program that locks without a pause", async () => {
  const locks = open();
  let isOver = false;
  setTimeout(() => {
    isOver = true;
  }, 50);
  const startMs = performance.now();
  while (!isOver && performance.now() < startMs + 5_000)
    await locks.mutex("x").run(() => undefined);
  expect(performance.now() - startMs).toBeLessThan(2_000);
});

it("creates files that only their user can read", async () => {
  const deep = join(folder, "a", "b", "locks.db");
  await (await open({}, deep).mutex("x").acquire()).release();
  await waitUntil(() => existsSync(`${deep}-wake`), { what: "the client listens" });
  expect(statSync(join(folder, "a", "b")).mode & 0o777).toBe(0o700);
  expect(statSync(deep).mode & 0o777).toBe(0o600);
  expect(statSync(`${deep}-wake`).mode & 0o777).toBe(0o700);
});

it("works where the path is too long for a socket", async () => {
  const long = join(folder, "n".repeat(120), "locks.db");
  const [a, b] = [open({}, long), open({}, long)];
  const lease = await a.mutex("x").acquire();
  const waiting = b.mutex("x").acquire();
  const sockets = (): number =>
    existsSync(`${long}-wake`) ? readdirSync(`${long}-wake`).length : 0;
  await waitUntil(() => sockets() === 2, { what: "both clients are subscribed" });
  await lease.release();
  await (await waiting).release();
});

it("finds the home folder in the password file, not in the environment", async () => {
  const { HOME, XDG_STATE_HOME } = process.env;
  process.env.HOME = folder;
  process.env.XDG_STATE_HOME = folder;
  const home = userInfo().homedir;
  expect(defaultPath()).toBe(join(home, ".local", "state", "holdfast", "locks.db"));
  expect(home).not.toBe(folder);
  process.env.HOME = HOME;
  if (XDG_STATE_HOME === undefined) delete process.env.XDG_STATE_HOME;
  else process.env.XDG_STATE_HOME = XDG_STATE_HOME;
});

it("is opened by its URL", async () => {
  const locks = await connect(`file:${path}?namespace=a`);
  opened.push(locks);
  const lease = await locks.mutex("x").acquire();
  expect(await open().mutex("x").tryAcquire()).not.toBeNull();
  const same = new Holdfast(fileStore({ path, namespace: "a" }));
  opened.push(same);
  expect(await same.mutex("x").tryAcquire()).toBeNull();
  await lease.release();
});
