import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Acquire, Command, Reply } from "../../rules/ledger-command.js";
import { FileArbiter } from "./file-arbiter.js";
import { machinePort } from "./machine-port.js";
import { commit, openSqlite } from "./sqlite.js";

let folder: string;
let path: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  path = join(folder, "locks.db");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function acquireBy(owner: string, key = "l:a"): Acquire {
  const nowUs = Math.floor(machinePort.clock.nowMs() * 1000);
  const times = { ttlUs: 30e6, offerUs: 2e6, touchUs: 2e6, notAfterUs: nowUs + 5e6 };
  const request = { mode: "exclusive", weight: 1, limit: 1, span: 1, meta: "{}" } as const;
  const client = `client of ${owner}`;
  return {
    type: "acquire",
    key,
    owner,
    client,
    ...request,
    ...times,
    enqueue: false,
    seenToken: 0,
  };
}

const releaseBy = (owner: string): Command => {
  return { type: "release", key: "l:a", owner, tombstoneUs: 0, keep: null };
};

async function replyTo(arbiter: FileArbiter, command: Command): Promise<Reply> {
  const { replies } = await arbiter.execute("", [command]);
  return replies[0] as Reply;
}

it("gives two clients tokens that rise, within one tick of the clock, too", async () => {
  const arbiters = [new FileArbiter(path, "two"), new FileArbiter(path, "two")];
  let lastToken = 0;
  for (let turn = 0; turn < 3_000; turn += 1) {
    // Each takes turns in a row: the first reserves the tokens of the tick, the next use them.
    const arbiter = arbiters[Math.floor(turn / 3) % 2] as FileArbiter;
    const owner = `owner-${turn}`;
    const reply = await replyTo(arbiter, acquireBy(owner));
    if (reply.type !== "granted") throw new Error(`the reply was ${reply.type}`);
    expect(reply.token).toBeGreaterThan(lastToken);
    lastToken = reply.token;
    expect(await replyTo(arbiter, releaseBy(owner))).toMatchObject({ held: true });
  }
  for (const arbiter of arbiters) await arbiter.close();
});

it("does not take a name that another client holds, nor end its hold", async () => {
  const [ours, theirs] = [new FileArbiter(path, "held"), new FileArbiter(path, "held")];
  for (const owner of ["first", "second"]) {
    await replyTo(ours, acquireBy(owner));
    await replyTo(ours, releaseBy(owner));
  }
  await replyTo(theirs, acquireBy("third"));
  expect(await replyTo(ours, acquireBy("fourth"))).toMatchObject({ type: "busy" });
  expect(await replyTo(ours, releaseBy("second"))).toMatchObject({ held: false });
  expect(await replyTo(theirs, releaseBy("third"))).toMatchObject({ held: true });
  await ours.close();
  await theirs.close();
});

it("commits again after a statement met a transaction of another connection", () => {
  const file = join(folder, "plain.db");
  const [ours, theirs] = [openSqlite(file), openSqlite(file)];
  ours.get("PRAGMA journal_mode = WAL", []);
  ours.exec("CREATE TABLE t (key TEXT PRIMARY KEY)");
  for (const database of [ours, theirs]) database.exec("PRAGMA busy_timeout = 0");
  const insert = "INSERT INTO t SELECT key FROM (SELECT ? AS key) WHERE key IS NOT NULL";
  const remove = "DELETE FROM t WHERE key = ?";
  const rows = () => theirs.all("SELECT key FROM t ORDER BY key", []).flat();
  expect(ours.changeAlone(insert, ["a"])).toBe(1);

  theirs.begin();
  expect(ours.changeAlone(insert, ["b"])).toBeUndefined();
  theirs.exec("COMMIT");
  // The failed statement is still in progress: this one would not be committed.
  expect(ours.changeAlone(remove, ["a"]) ?? "not done").toBe(
    process.getBuiltinModule("node:sqlite") ? 1 : "not done",
  );
  ours.begin();
  ours.run(insert, ["c"]);
  commit(ours);
  expect(ours.changeAlone(remove, ["a"])).toBe(process.getBuiltinModule("node:sqlite") ? 0 : 1);
  expect(rows()).toEqual(["c"]);
  ours.close();
  theirs.close();
});
