/** Folders and paths of the lock file: unusable ones, special ones, and the default one. */
import { spawnSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect, Holdfast } from "../../src/index.js";
import { fileStore } from "../../src/stores/file/index.js";
import { defaultPath } from "../../src/stores/file/lock-folder.js";
import { waitUntil } from "../servers/wait-until.js";
import { FileTrial, failureOf } from "./trial.js";

const isRoot = process.getuid?.() === 0;

let trial: FileTrial;
beforeEach(() => {
  trial = new FileTrial();
});
afterEach(() => trial.close());

describe("a place that cannot be used", () => {
  it("is refused when another user owns it", async (context) => {
    if (!isRoot) return context.skip("only root can give a folder away");
    const theirs = join(trial.folder, "theirs");
    mkdirSync(theirs);
    chownSync(theirs, 12_345, 12_345);
    const error = await failureOf(trial.open({}, join(theirs, "locks.db")).mutex("x").acquire());
    expect(error.message).toContain("belongs to another user");
    expect(readdirSync(theirs)).toEqual([]);
  });

  it("is refused when it cannot be written", async () => {
    writeFileSync(join(trial.folder, "file"), "");
    const error = await failureOf(
      trial
        .open({}, join(trial.folder, "file", "locks.db"))
        .mutex("x")
        .acquire(),
    );
    expect(error.message).toContain("cannot be used for locks");
    expect(error.retryable).toBe(false);
  });

  it("is refused when the file is damaged, and the file stays as it is", async () => {
    const text = "this is no database ".repeat(500);
    writeFileSync(trial.path, text);
    const error = await failureOf(trial.open().mutex("x").acquire());
    expect(error.message).toMatch(/damaged.*move it away/s);
    expect(readFileSync(trial.path, "utf8")).toBe(text);
  });

  it("is refused when a newer version wrote the file", async () => {
    const locks = trial.open();
    await (await locks.mutex("x").acquire()).release();
    await locks.close();
    trial.edit("PRAGMA user_version = 99");
    const error = await failureOf(trial.open().mutex("y").acquire());
    expect(error.message).toContain("has format 99");
  });
});

it("reports a full disk, and works again when there is space", async (context) => {
  if (!isRoot) return context.skip("only root can mount a small file system");
  const disk = join(trial.folder, "disk");
  mkdirSync(disk);
  const mount = spawnSync("/bin/mount", ["-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", disk]);
  if (mount.status !== 0) return context.skip(`no mount: ${mount.stderr}`);
  try {
    const locks = trial.open({}, join(disk, "locks.db"));
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
  const wake = `${trial.path}-wake`;
  mkdirSync(wake, { mode: 0o700 });
  const dead = join(wake, "dead");
  const script =
    "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))";
  spawnSync(process.execPath, ["-e", script, dead]);
  const live = createServer().listen(join(wake, "live"));
  expect(existsSync(dead)).toBe(true);
  const locks = trial.open();
  await (await locks.mutex("x").acquire()).release();
  await waitUntil(() => !existsSync(dead), { what: "the socket of the killed process is removed" });
  expect(readdirSync(wake)).toHaveLength(2);
  await locks.close();
  expect(readdirSync(wake)).toEqual(["live"]);
  live.close();
});

it("creates files that only their user can read", async () => {
  const deep = join(trial.folder, "a", "b", "locks.db");
  await (await trial.open({}, deep).mutex("x").acquire()).release();
  await waitUntil(() => existsSync(`${deep}-wake`), { what: "the client listens" });
  expect(statSync(join(trial.folder, "a", "b")).mode & 0o777).toBe(0o700);
  expect(statSync(deep).mode & 0o777).toBe(0o600);
  expect(statSync(`${deep}-wake`).mode & 0o777).toBe(0o700);
});

it("works where the path is too long for a socket", async () => {
  const long = join(trial.folder, "n".repeat(120), "locks.db");
  const [a, b] = [trial.open({}, long), trial.open({}, long)];
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
  process.env.HOME = trial.folder;
  process.env.XDG_STATE_HOME = trial.folder;
  const home = userInfo().homedir;
  expect(defaultPath()).toBe(join(home, ".local", "state", "holdfast", "locks.db"));
  expect(home).not.toBe(trial.folder);
  process.env.HOME = HOME;
  if (XDG_STATE_HOME === undefined) delete process.env.XDG_STATE_HOME;
  else process.env.XDG_STATE_HOME = XDG_STATE_HOME;
});

it("is opened by its URL", async () => {
  const locks = await connect(`file:${trial.path}?namespace=a`);
  trial.add(locks);
  const lease = await locks.mutex("x").acquire();
  expect(await trial.open().mutex("x").tryAcquire()).not.toBeNull();
  const same = new Holdfast(fileStore({ path: trial.path, namespace: "a" }));
  trial.add(same);
  expect(await same.mutex("x").tryAcquire()).toBeNull();
  await lease.release();
});
