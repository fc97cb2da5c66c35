/** Lock files at places that are wrong on purpose, and good ones. */
import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import type { Examination } from "../../src/contract/examination.js";
import { fileStore } from "../../src/stores/file/index.js";
import { Examined, examined, expectFound, expectGood } from "../stores/examined.js";

const isRoot = process.getuid?.() === 0;
const SHARED_MEMORY = "/dev/shm";
const TMPFS = 0x01021994;
const OVERLAY = 0x794c7630;
/** On the disk of this checkout: the folder for temporary files may be in memory. */
const DISK = join(import.meta.dirname, "../../node_modules/.holdfast-doctor");

let folder: string;
beforeEach(() => {
  mkdirSync(DISK, { recursive: true });
  folder = mkdtempSync(join(DISK, "doctor-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
afterAll(() => rmSync(DISK, { recursive: true, force: true }));

const open = (path: string): Holdfast => new Holdfast(fileStore({ path }));
const examine = (path: string): Promise<Examined> => examined(open(path));

async function use(path: string): Promise<void> {
  const locks = open(path);
  await (await locks.mutex("m").acquire()).release();
  await locks.close();
}

test("a lock file on a local disk is good, and none is made to examine it", async (context) => {
  const { type } = statfsSync(folder);
  if (type === TMPFS || type === OVERLAY) return context.skip("the checkout is on no disk");
  const path = join(folder, "locks.db");
  const missing = await examine(path);
  expectGood(missing);
  expectFound(missing, "file/header", "note");
  expect(existsSync(path)).toBe(false);
  await use(path);
  const found = await examine(path);
  expectGood(found);
  expect(found.ids("note", "skipped")).toEqual([]);
});

test("a file system in memory is found", async (context) => {
  if (!existsSync(SHARED_MEMORY) || statfsSync(SHARED_MEMORY).type !== TMPFS) {
    return context.skip("there is no file system in memory");
  }
  const inMemory = mkdtempSync(join(SHARED_MEMORY, "doctor-"));
  try {
    expectFound(await examine(join(inMemory, "locks.db")), "file/filesystem", "warning");
  } finally {
    rmSync(inMemory, { recursive: true, force: true });
  }
});

test("a file system that is not local is found", async (context) => {
  const remote = join(folder, "remote");
  mkdirSync(remote);
  // A file system of FUSE, as sshfs is one: bindfs shows another folder.
  const mounted = spawnSync("bindfs", [DISK, remote]);
  if (mounted.status !== 0) {
    return context.skip(`bindfs is needed: ${mounted.error?.message ?? mounted.stderr}`);
  }
  try {
    expectFound(await examine(join(remote, "locks.db")), "file/filesystem", "danger");
  } finally {
    spawnSync("/bin/umount", ["-l", remote]);
  }
});

test("a process without SQLite says so", async () => {
  // Far from the packages of the checkout, and without the SQLite of Node.
  const apart = mkdtempSync(join(tmpdir(), "holdfast-doctor-"));
  cpSync(join(import.meta.dirname, "../../dist"), join(apart, "dist"), { recursive: true });
  writeFileSync(join(apart, "package.json"), '{ "type": "module", "version": "0.0.0" }');
  const hasBuiltIn = isBuiltin("node:sqlite");
  const args = [...(hasBuiltIn ? ["--no-experimental-sqlite"] : []), "dist/cli/main.js", "doctor"];
  const run = spawnSync(
    process.execPath,
    [...args, "--json", "--store", join(folder, "locks.db")],
    {
      cwd: apart,
      encoding: "utf8",
    },
  );
  rmSync(apart, { recursive: true, force: true });
  const { findings } = JSON.parse(run.stdout) as Examination;
  const what = expect.stringContaining("npm install libsql");
  expect(findings).toContainEqual({ id: "file/sqlite", severity: "skipped", what });
});

test("the layer of a container, and a disk that is nearly full, are found", async (context) => {
  if (!isRoot) return context.skip("only root can mount a file system");
  const small = join(folder, "small");
  mkdirSync(small);
  const mounted = spawnSync("/bin/mount", [
    "-t",
    "tmpfs",
    "-o",
    "size=8m,mode=700",
    "tmpfs",
    small,
  ]);
  if (mounted.status !== 0) return context.skip(`no mount: ${mounted.stderr}`);
  const parts = ["lower", "upper", "work", "layer"].map((name) => join(small, name));
  const [lower, upper, work, layer = ""] = parts;
  for (const part of parts) mkdirSync(part);
  const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  const overlay = spawnSync("/bin/mount", ["-t", "overlay", "-o", options, "overlay", layer]);
  try {
    expectFound(await examine(join(small, "locks.db")), "file/space", "warning");
    if (overlay.status !== 0) return context.skip(`no overlay: ${overlay.stderr}`);
    expectFound(await examine(join(layer, "locks.db")), "file/filesystem", "warning");
  } finally {
    spawnSync("/bin/umount", ["-l", layer]);
    spawnSync("/bin/umount", ["-l", small]);
  }
});

test("a folder that others write or own is found", async (context) => {
  chmodSync(folder, 0o777);
  expectFound(await examine(join(folder, "locks.db")), "file/owner", "warning");
  if (!isRoot) return context.skip("only root can give a folder away");
  chownSync(folder, 12_345, 12_345);
  expectFound(await examine(join(folder, "locks.db")), "file/owner", "danger");
});

test("a file of another program, and a damaged one, are found and left alone", async () => {
  const path = join(folder, "locks.db");
  writeFileSync(path, "another program wrote this ".repeat(500));
  const before = readFileSync(path);
  expectFound(await examine(path), "file/header", "danger");
  expect(readFileSync(path).equals(before)).toBe(true);
  rmSync(path);
  await use(path);
  const bytes = readFileSync(path);
  bytes.fill(0x5a, 4096 + 8);
  writeFileSync(path, bytes);
  const damaged = await examine(path);
  expectFound(damaged, "file/integrity", "danger");
});

test("a file that was replaced while it is in use is found", async () => {
  const path = join(folder, "locks.db");
  const locks = open(path);
  const lease = await locks.mutex("m").acquire();
  rmSync(path);
  await use(join(folder, "other.db"));
  writeFileSync(path, readFileSync(join(folder, "other.db")));
  expectFound(new Examined(await locks.examine()), "file/replaced", "warning");
  await lease.release();
  await locks.close();
});

test("a process that is stopped inside a transaction is found", async () => {
  const path = join(folder, "locks.db");
  await use(path);
  const child = fork(join(import.meta.dirname, "./transaction.mjs"), [path]);
  await once(child, "message");
  const found = await examine(path);
  child.send("end");
  expectFound(found, "file/writer", "danger");
  expect(found.of("file/writer").what).toContain(`${child.pid}`);
  await once(child, "exit");
});
