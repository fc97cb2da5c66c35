import { beforeEach, expect, it } from "vitest";
import { ManualPort, settled } from "../../../test/fixtures/manual-port.js";
import { type Watched, watch } from "../../../test/fixtures/outcome.js";
import { EntryBatch, type EntryReply } from "./entry-batch.js";
import type { Connection } from "./wire/connection.js";
import type { MultiReply } from "./wire/multi.js";
import { create2, exists, type Request, remove } from "./wire/requests.js";
import { serverError, ZookeeperError } from "./wire/zookeeper-error.js";

const NO_NODE = -101;
const MINUTE_MS = 60_000;

let port: ManualPort;
let writes: EntryBatch;
/** The paths of all requests, in the order of sending. */
let sent: string[];
/** The queues that are not there. */
let absent: Set<string>;
/** The answer to a transaction, where it is not that of a server. */
let failure: ZookeeperError | null;
let zxid: bigint;

beforeEach(() => {
  port = new ManualPort();
  writes = new EntryBatch(port);
  sent = [];
  absent = new Set();
  failure = null;
  zxid = 0n;
});

/** A connection to a server, which does what it is asked for, and numbers all transactions. */
function connect(): Connection {
  const send = async ({ path }: Request<unknown>): Promise<unknown> => {
    sent.push(path);
    await settled();
    zxid += 1n;
    const parts = path.split(", ");
    const at = parts.findIndex((one) => absent.has(one.slice(0, one.lastIndexOf("/"))));
    const error = serverError(NO_NODE, path);
    if (parts.length > 1) {
      if (failure) throw failure;
      const replies = parts.map((one) => ({ zxid, path: made(one), stat: null }));
      const refused: MultiReply = { type: "refused", zxid, at, error };
      return at < 0 ? { type: "done", zxid, replies } : refused;
    }
    if (at >= 0) throw error;
    return made(path) === null ? { zxid } : { zxid, path, stat: null };
  };
  return { send } as unknown as Connection;
}

const made = (path: string): string | null => (path.endsWith("-gone") ? null : path);

interface Asked {
  readonly written: Watched<EntryReply>;
  readonly behind: Watched<unknown>;
}

/** Asks for an entry in a queue, and for a request behind it. */
function ask(queue: string, connection: Connection, isAlone = false): Asked {
  const request = create2(`/${queue}/e`);
  const write = { connection, queue: `/${queue}`, request, isAlone };
  const { written, behind } = writes.send(write, () => connection.send(exists(`${queue}?`)));
  return { written: watch(written), behind: watch(behind) };
}

function leave(queue: string, connection: Connection): Watched<EntryReply> {
  const request = remove(`/${queue}/e-gone`);
  const write = { connection, queue: `/${queue}`, request, isAlone: false };
  return watch(writes.send(write, async () => null).written);
}

/** Makes the queues known. */
async function enter(queues: readonly string[], connection: Connection): Promise<void> {
  for (const queue of queues) ask(queue, connection);
  await settled();
  await settled();
  sent = [];
}

async function answered(): Promise<void> {
  await port.advance(0);
  await settled();
  await settled();
}

const tokens = (asked: readonly Asked[]): (bigint | null)[] =>
  asked.map(({ written: { value } }) => (value?.type === "done" ? value.zxid : null));

it("joins the writes of one turn, and sends what follows them behind", async () => {
  const connection = connect();
  await enter(["a", "b"], connection);
  const asked = [ask("a", connection), ask("b", connection)];
  await answered();
  expect(sent).toEqual(["/a/e, /b/e", "a?", "b?"]);
  expect(asked.map(({ written }) => written.value)).toMatchObject([
    { type: "done", path: "/a/e" },
    { type: "done", path: "/b/e" },
  ]);
  expect(asked.map(({ behind }) => behind.state)).toEqual(["resolved", "resolved"]);
});

it("sends a lone write as it is", async () => {
  const connection = connect();
  ask("a", connection);
  await answered();
  expect(sent).toEqual(["/a/e", "a?"]);
});

it("never joins two writes for one queue: their tokens differ, and rise", async () => {
  const connection = connect();
  await enter(["a", "b", "c"], connection);
  const asked = ["a", "b", "a", "c"].map((queue) => ask(queue, connection));
  await answered();
  expect(sent.filter((path) => path.startsWith("/"))).toEqual(["/a/e, /b/e", "/a/e, /c/e"]);
  const [first, , third] = tokens(asked);
  expect(third).toBeGreaterThan(first ?? 0n);
});

it("joins no queue that may be missing, nor one that was not seen for a minute", async () => {
  const connection = connect();
  await enter(["a", "b"], connection);
  for (const queue of ["a", "new", "b"]) ask(queue, connection);
  await answered();
  expect(sent.filter((path) => path.startsWith("/"))).toEqual(["/a/e", "/new/e", "/b/e"]);
  await port.advance(MINUTE_MS);
  sent = [];
  for (const queue of ["a", "b"]) ask(queue, connection);
  await answered();
  expect(sent.filter((path) => path.startsWith("/"))).toEqual(["/a/e", "/b/e"]);
});

it("forgets a queue that is missing, after it refused those beside it once", async () => {
  const connection = connect();
  await enter(["a", "b"], connection);
  absent.add("/b");
  const joined = [ask("a", connection), ask("b", connection)];
  await answered();
  expect(joined.map(({ written }) => written.value)).toEqual([
    { type: "refused" },
    { type: "refused" },
  ]);
  const alone = [ask("a", connection, true), ask("b", connection, true)];
  await answered();
  expect(alone.map(({ written }) => written.state)).toEqual(["resolved", "rejected"]);
  absent.clear();
  sent = [];
  ask("a", connection);
  ask("b", connection);
  await answered();
  expect(sent.filter((path) => path.startsWith("/"))).toEqual(["/a/e", "/b/e"]);
});

it("joins removals, but not with writes on another connection", async () => {
  const [one, other] = [connect(), connect()];
  const left = [leave("a", one), leave("b", one), leave("c", other)];
  await answered();
  expect(sent).toEqual(["/a/e-gone, /b/e-gone", "/c/e-gone"]);
  expect(left.map(({ value }) => value)).toMatchObject([
    { type: "done", path: null },
    { type: "done", path: null },
    { type: "done", path: null },
  ]);
});

it.each([
  ["unknown", "rejected", "rejected"],
  ["refused", "resolved", "resolved"],
  ["not_sent", "resolved", "resolved"],
] as const)("tells a failure of the outcome %s to each write", async (outcome, ...states) => {
  const connection = connect();
  failure = new ZookeeperError("connection_lost", outcome, "for a test");
  const left = [leave("a", connection), leave("b", connection)];
  await answered();
  expect(left.map(({ state }) => state)).toEqual(states);
});

it("joins no more writes than a request has room for", async () => {
  const connection = connect();
  for (let count = 0; count < 300; count += 1) leave(`q${count}`, connection);
  await answered();
  expect(sent.map((path) => path.split(", ").length)).toEqual([128, 128, 44]);
});
