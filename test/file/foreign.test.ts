/** Files that are not lock files, or only a part of one: their content stays as it is. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Holdfast } from "../../src/index.js";
import { openSqlite } from "../../src/stores/file/client.js";
import { startProcess } from "../faults/process.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { closeAll } from "../servers/server-process.js";
import { waitUntil } from "../servers/wait-until.js";
import { FileTrial, failureOf } from "./trial.js";

const isRoot = process.getuid?.() === 0;
const DIST = new URL("../../dist/index.js", import.meta.url).href;
const FILE = new URL("../../dist/stores/file/index.js", import.meta.url).href;

let trial: FileTrial;
let folder: string;
let path: string;

beforeEach(() => {
  trial = new FileTrial();
  ({ folder, path } = trial);
});

afterEach(() => trial.close());

const open = (at: string = path): Holdfast => trial.open({}, at);

async function useOnce(at: string = path): Promise<bigint> {
  const locks = open(at);
  const { token } = await locks.mutex("x").acquire();
  await locks.close();
  return token;
}

function contents(): Record<string, string> {
  const names = readdirSync(folder).sort();
  return Object.fromEntries(
    names.map((name) => [name, readFileSync(join(folder, name)).toString("base64")]),
  );
}

async function expectRefused(words: RegExp, at: string = path): Promise<void> {
  const error = await failureOf(open(at).mutex("x").acquire());
  expect(error.message).toMatch(words);
  expect(error.message).toContain(at);
  expect(error.retryable).toBe(false);
}

const TABLE = "CREATE TABLE orders (id); INSERT INTO orders VALUES (1);";

describe("a database of another program is refused, and nothing is changed", () => {
  it.each([
    ["without any number of its own", TABLE],
    ["with a WAL", `PRAGMA journal_mode = WAL; ${TABLE}`],
    ["with our version", `${TABLE} PRAGMA user_version = 1`],
    ["with an id of its own", `${TABLE} PRAGMA application_id = 77`],
    ["without tables", "PRAGMA user_version = 1"],
    ["with tables of our names", "CREATE TABLE machine (a); CREATE TABLE name (b)"],
  ])("%s", async (_, sql) => {
    trial.edit(sql);
    const before = contents();
    await expectRefused(/SQLite database of another program/);
    expect(contents()).toEqual(before);
  });

  it("also with a WAL that is not checkpointed", async () => {
    const other = join(folder, "other.db");
    const database = openSqlite(other);
    database.exec(`PRAGMA journal_mode = WAL; ${TABLE}`);
    for (const end of ["", "-wal"]) writeFileSync(path + end, readFileSync(other + end));
    database.close();
    rmSync(other);
    const before = contents();
    await expectRefused(/SQLite database of another program/);
    expect(contents()).toEqual(before);
  });

  it("also when it replaces a lock file that is in use", async () => {
    const locks = open();
    const lease = await locks.mutex("x").acquire({ ttlMs: 900 });
    const other = join(folder, "other.db");
    trial.edit(`PRAGMA journal_mode = WAL; ${TABLE}`, other);
    const bytes = readFileSync(other);
    renameSync(other, path);
    writeFileSync(`${path}-wal.new`, "of another program");
    renameSync(`${path}-wal.new`, `${path}-wal`);
    await waitUntil(() => lease.state === "lost", { what: "the loss" });
    await expectRefused(/SQLite database of another program/);
    expect(readFileSync(path).equals(bytes)).toBe(true);
    expect(readFileSync(`${path}-wal`, "utf8")).toBe("of another program");
  });
});

describe("a file that is not a database is refused, and nothing is changed", () => {
  it.each([
    ["a text", "no database ".repeat(1_000)],
    ["a short text", "x"],
  ])("%s", async (_, text) => {
    writeFileSync(path, text);
    const before = contents();
    await expectRefused(/no SQLite database/);
    expect(contents()).toEqual(before);
  });

  it("a folder", async () => {
    mkdirSync(path);
    await expectRefused(/is a folder/);
    expect(readdirSync(path)).toEqual([]);
  });

  it("a pipe", async () => {
    expect(spawnSync("/usr/bin/mkfifo", [path]).status).toBe(0);
    await expectRefused(/no regular file/);
    expect(readdirSync(folder)).toEqual(["locks.db"]);
  });

  it("a symbolic link that leads nowhere", async () => {
    symlinkSync(join(folder, "missing.db"), path);
    await expectRefused(/symbolic link to a file that is not there/);
    expect(readdirSync(folder)).toEqual(["locks.db"]);
  });

  it("a file without permission", (context) => {
    writeFileSync(path, "secret");
    chmodSync(path, 0);
    const user = isRoot ? 12_345 : undefined;
    if (user !== undefined) for (const one of [folder, path]) chownSync(one, user, user);
    const script = `
      import { Holdfast } from ${JSON.stringify(DIST)};
      import { fileStore } from ${JSON.stringify(FILE)};
      const locks = new Holdfast(fileStore({ path: ${JSON.stringify(path)} }));
      await locks.mutex("x").acquire().catch((error) => console.log(error.code, error.message));`;
    const ran = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
      ...(user === undefined ? {} : { uid: user, gid: user }),
    });
    if (/ERR_MODULE_NOT_FOUND|EACCES/.test(ran.stderr)) {
      return context.skip("another user cannot read this project");
    }
    expect(ran.stdout).toMatch(/^HF_STORE .*locks\.db.*permission/);
    expect(readdirSync(folder)).toEqual(["locks.db"]);
    chmodSync(path, 0o600);
    expect(readFileSync(path, "utf8")).toBe("secret");
  });
});

describe("a lock file", () => {
  const idOf = (): unknown => {
    const database = openSqlite(path);
    const row = database.get("PRAGMA application_id", []);
    database.close();
    return row?.[0];
  };

  it("can be made from an empty file", async () => {
    writeFileSync(path, "");
    await useOnce();
    expect(idOf()).toBe(0x48464c4b);
  });

  it("of another format is refused, whatever tables it has, and nothing is changed", async () => {
    await useOnce();
    for (const version of [1, 3]) {
      trial.edit(`PRAGMA user_version = ${version}`);
      const before = readFileSync(path);
      await expectRefused(
        new RegExp(`format ${version}, and this version of holdfast uses format 2`),
      );
      expect(readFileSync(path).equals(before)).toBe(true);
    }
  });

  it("has its mark in its first page, not only in its WAL", async () => {
    await open().mutex("x").acquire();
    expect(readFileSync(path).readUInt32BE(68)).toBe(0x48464c4b);
  });

  it("is the same file through every link", async () => {
    mkdirSync(join(folder, "links"));
    const link = join(folder, "links", "other-name.db");
    symlinkSync(path, link);
    const lease = await open().mutex("x").acquire();
    expect(await open(link).mutex("x").tryAcquire()).toBe(null);
    const waiting = open(link).mutex("x").acquire();
    const watch = new Stopwatch();
    await lease.release();
    await (await waiting).release();
    watch.expectLessThan(1_000);
    expect(readdirSync(join(folder, "links"))).toEqual(["other-name.db"]);
  });

  it("is made by one of many processes that come at the same time", async () => {
    const script = `
      import { Holdfast } from ${JSON.stringify(DIST)};
      import { fileStore } from ${JSON.stringify(FILE)};
      const locks = new Holdfast(fileStore({ path: ${JSON.stringify(path)} }));
      process.on("message", async () => {
        const tokens = [];
        for (let turn = 0; turn < 20; turn += 1) {
          await locks.mutex("x").run((lease) => void tokens.push(String(lease.token)));
        }
        await locks.close();
        process.send(tokens, () => process.exit());
      });
      process.send("ready");`;
    const file = join(folder, "contender.mjs");
    writeFileSync(file, script);
    const contenders = Array.from({ length: 6 }, () => startProcess(pathToFileURL(file)));
    try {
      await Promise.all(contenders.map((one) => one.receive()));
      await Promise.all(contenders.map((one) => one.send({})));
      const tokens = (await Promise.all(contenders.map((one) => one.receive()))) as string[][];
      expect(new Set(tokens.flat()).size).toBe(120);
    } finally {
      await closeAll(contenders);
    }
    expect(idOf()).toBe(0x48464c4b);
  });
});

describe("beside the lock file", () => {
  it("a WAL of a deleted file is moved aside, not deleted", async () => {
    writeFileSync(`${path}-wal`, "what another program wrote");
    await useOnce();
    const left = readdirSync(folder).filter((name) => name.startsWith("locks.db-wal.left-"));
    expect(left).toHaveLength(1);
    const text = readFileSync(join(folder, left[0] ?? ""), "utf8");
    expect(text).toBe("what another program wrote");
  });

  /** The journal of a database in the middle of a transaction. */
  function journalOf(sql: string, at: string): Buffer {
    const database = openSqlite(at);
    database.exec(`PRAGMA synchronous = OFF; ${sql}`);
    const journal = readFileSync(`${at}-journal`);
    database.exec("ROLLBACK");
    database.close();
    rmSync(at);
    return journal;
  }

  const foreign = (): Buffer =>
    journalOf(`${TABLE} BEGIN; UPDATE orders SET id = 2`, join(folder, "other.db"));

  it.each([
    ["a journal without a file", "-journal", undefined, foreign],
    ["a journal of an empty file", "-journal", "", foreign],
    ["a text beside a missing file", "-journal", undefined, () => "a text"],
    ["a text beside an empty file", "-journal", "", () => "a text"],
    ["a WAL of an empty file", "-wal", "", () => "a text"],
    ["the shared memory of an empty file", "-shm", "", () => "a text"],
  ])("%s is refused, and nothing is changed", async (_, end, text, make) => {
    writeFileSync(path + end, make());
    if (text !== undefined) writeFileSync(path, text);
    const before = contents();
    await expectRefused(new RegExp(`locks\\.db${end} belongs to no lock file`));
    expect(contents()).toEqual(before);
  });

  it("a journal of another program is refused beside a lock file", async () => {
    await useOnce();
    writeFileSync(`${path}-journal`, foreign());
    const before = [readFileSync(path), readFileSync(`${path}-journal`)];
    await expectRefused(/locks\.db-journal belongs to no lock file/);
    expect([readFileSync(path), readFileSync(`${path}-journal`)]).toEqual(before);
  });

  it.each([undefined, ""])("a journal without a page is used (file: %j)", async (text) => {
    const journal = journalOf("BEGIN IMMEDIATE", join(folder, "other.db"));
    expect(journal).toHaveLength(512);
    writeFileSync(`${path}-journal`, journal);
    if (text !== undefined) writeFileSync(path, text);
    await useOnce();
    expect(readdirSync(folder)).not.toContain("locks.db-journal");
  });

  it("the journal that a killed process left beside a lock file is used", async () => {
    const token = await useOnce();
    const copy = join(folder, "copy.db");
    trial.edit(`VACUUM INTO '${copy}'`);
    const file = readFileSync(copy);
    const journal = journalOf("BEGIN; PRAGMA user_version = 7", copy);
    writeFileSync(copy, file);
    writeFileSync(`${copy}-journal`, journal);
    expect(journal.length).toBeGreaterThan(4_096);
    expect(await useOnce(copy)).toBeGreaterThan(token);
    expect(readdirSync(folder)).not.toContain("copy.db-journal");
  });

  it("no file is created beside a refused file, also later", async () => {
    trial.edit(TABLE);
    await expectRefused(/SQLite database of another program/);
    // The socket of a later client exists, so an earlier one would exist too.
    const later = join(folder, "later.db");
    await open(later).mutex("x").acquire();
    await waitUntil(() => existsSync(`${later}-wake`), { what: "the socket of the later client" });
    const beside = readdirSync(folder).filter((name) => name.startsWith("locks.db"));
    expect(beside).toEqual(["locks.db"]);
  });

  it("a folder with the name of a temporary folder is kept", async () => {
    const guard = `${path}-clearing`;
    mkdirSync(guard);
    writeFileSync(join(guard, "kept"), "kept");
    utimesSync(guard, 0, 0);
    await expectRefused(/locks\.db-clearing/);
    expect(readFileSync(join(guard, "kept"), "utf8")).toBe("kept");
  });

  it("a file among the sockets is kept", async () => {
    const wake = `${path}-wake`;
    mkdirSync(wake, { mode: 0o700 });
    writeFileSync(join(wake, "kept"), "kept");
    const dead = join(wake, "dead");
    const listen =
      "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 9))";
    spawnSync(process.execPath, ["-e", listen, dead]);
    const locks = open();
    await locks.mutex("x").acquire();
    await waitUntil(() => !readdirSync(wake).includes("dead"), {
      what: "dead sockets are removed",
    });
    await locks.close();
    expect(readdirSync(wake)).toEqual(["kept"]);
  });
});
