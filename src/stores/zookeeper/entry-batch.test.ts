import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { type Watched, watch } from "../../../test/fixtures/outcome.js";
import { EntryBatch, type EntryRequest, KnownQueues, type WriteReply } from "./entry-batch.js";
import { serverError, ZookeeperError } from "./errors.js";
import type { Connection } from "./wire/connection.js";
import { requestFrame } from "./wire/pending-requests.js";
import { create2, exists, multi, type Request, remove, setData } from "./wire/requests.js";

const NO_NODE = -101;
const NO_AUTH = -102;
const BAD_VERSION = -103;
/** The version of the data of a queue, when it is seen. */
const VERSION = 7;

let runtime: ManualRuntime;
let known: KnownQueues;
let writes: EntryBatch;
/** The paths of all requests, in the order of sending. */
let sent: string[];
/** The last request, as it is on the wire. */
let frame: Buffer;
/** The errors of the server, by paths. */
let errors: Map<string, number>;
/** How many children a queue has with the new entry; 1 where nothing is said. */
let children: Map<string, number>;
/** The answer to a transaction, where it is not that of a server. */
let failure: ZookeeperError | null;
let zxid: bigint;

beforeEach(() => {
  runtime = new ManualRuntime();
  known = new KnownQueues(runtime.clock);
  writes = new EntryBatch(runtime, known);
  sent = [];
  errors = new Map();
  children = new Map();
  failure = null;
  zxid = 0n;
});

/** A connection to a server, which does what it is asked for, and numbers all transactions. */
function connect(): Connection {
  const send = async (request: Request<unknown>): Promise<unknown> => {
    const { path } = request;
    sent.push(path);
    frame = requestFrame(1, request, "");
    await settled();
    zxid += 1n;
    const parts = path.split(", ");
    const numbers = parts.map((part) => errors.get(part));
    const at = numbers.findIndex((number) => number !== undefined);
    const error = serverError(numbers[at] ?? NO_NODE, path);
    if (parts.length > 1) {
      if (failure) throw failure;
      if (at >= 0) return { type: "refused", zxid, at, error };
      return { type: "done", zxid, replies: parts.map((part) => joinedReplyTo(part)) };
    }
    if (at >= 0) throw error;
    return path.endsWith("-gone") ? { zxid } : replyTo(path);
  };
  return { send } as unknown as Connection;
}

function replyTo(path: string): unknown {
  if (path.endsWith("-gone")) return { zxid, path: null, stat: null };
  if (path.endsWith("/e")) return { zxid, path, stat: { createdMs: 5, czxid: zxid } };
  const childCount = children.get(path) ?? 1;
  const stat = { childCount, dataBytes: 0, modifiedMs: 6, version: VERSION + 1 };
  return { zxid, path: null, stat };
}

/** Servers tell no stat of a znode that a transaction makes. */
function joinedReplyTo(path: string): unknown {
  return path.endsWith("/e") ? { zxid, path, stat: null } : replyTo(path);
}

interface Asked {
  readonly written: Watched<WriteReply>;
  readonly behind: Watched<unknown>;
}

/** Asks for an entry in a queue, and for a request behind it. */
function ask(
  queue: string,
  connection: Connection,
  options: Partial<Pick<EntryRequest, "isSeparate" | "needsTime" | "dataBytes">> = {},
): Asked {
  const { isSeparate = false, needsTime = false, dataBytes = 0 } = options;
  const request = create2(`/${queue}/e`);
  const write = { connection, queue: `/${queue}`, request, dataBytes, needsTime, isSeparate };
  const { written, behind } = writes.send(write, () => connection.send(exists(`${queue}?`)));
  return { written: watch(written), behind: watch(behind) };
}

function leave(queue: string, connection: Connection): Watched<WriteReply> {
  const request = remove(`/${queue}/e-gone`);
  const options = { dataBytes: 0, needsTime: false, isSeparate: false };
  const write = { connection, queue: `/${queue}`, request, ...options };
  return watch(writes.send(write, async () => null).written);
}

/** The queues were seen, with as many entries. */
function saw(queues: readonly string[], childCount: number): void {
  for (const queue of queues) {
    known.saw(`/${queue}`, { childCount, dataBytes: 0, version: VERSION });
  }
}

async function answered(): Promise<void> {
  await runtime.advance(0);
  await settled();
  await settled();
}

const sentWrites = (): string[] => sent.filter((path) => path.startsWith("/"));

const tokens = (asked: readonly Asked[]): (bigint | null)[] =>
  asked.map(({ written: { value } }) => (value?.type === "done" ? value.zxid : null));

it("joins the writes of one turn, and sends what follows them behind", async () => {
  const connection = connect();
  saw(["a", "b"], 2);
  const asked = [ask("a", connection), ask("b", connection)];
  await answered();
  expect(sent).toEqual(["/a/e, /b/e", "a?", "b?"]);
  expect(asked.map(({ written }) => written.value)).toMatchObject([
    { type: "done", path: "/a/e" },
    { type: "done", path: "/b/e" },
  ]);
  expect(asked.map(({ behind }) => behind.state)).toEqual(["resolved", "resolved"]);
});

it("stamps a quiet queue, and does not read it where its entry is the only one", async () => {
  const connection = connect();
  saw(["a", "b"], 1);
  const asked = [ask("a", connection), ask("b", connection)];
  await answered();
  expect(sent).toEqual(["/a/e, /a, /b/e, /b"]);
  expect(asked.map(({ behind }) => behind.value)).toEqual([null, null]);
  expect(asked[0]?.written.value).toMatchObject({ type: "done", path: "/a/e", atMs: 6 });
});

it("asks for the queue where its stamp shows another child, and stamps it no more", async () => {
  const connection = connect();
  saw(["a"], 1);
  children.set("/a", 2);
  const asked = ask("a", connection);
  await answered();
  expect(sent).toEqual(["/a/e, /a", "a?"]);
  expect(asked.behind.value).not.toBeNull();
  sent = [];
  ask("a", connection);
  await answered();
  expect(sent).toEqual(["/a/e", "a?"]);
});

it("stamps no queue that has data, nor one that it may not write", async () => {
  const connection = connect();
  known.saw("/a", { childCount: 1, dataBytes: 3, version: VERSION });
  saw(["b"], 1);
  errors.set("/b", NO_AUTH);
  ask("a", connection);
  const refused = ask("b", connection);
  await answered();
  expect(refused.written.value).toEqual({ type: "refused" });
  expect(refused.behind.value).toBeNull();
  errors.clear();
  sent = [];
  saw(["b"], 1);
  ask("b", connection);
  await answered();
  expect(sent).toEqual(["/b/e", "b?"]);
});

it("stamps only the version of the empty data that it saw", async () => {
  const connection = connect();
  saw(["a"], 1);
  ask("a", connection);
  await answered();
  const stamp = (version: number) => setData("/a", new Uint8Array(0), version);
  const stamped = (version: number) =>
    requestFrame(1, multi([create2("/a/e"), stamp(version)]), "");
  expect(frame).toEqual(stamped(VERSION));
  ask("a", connection);
  await answered();
  expect(frame).toEqual(stamped(VERSION + 1));
});

it("sends one stamp for a queue at a time", async () => {
  const connection = connect();
  saw(["a"], 1);
  for (let count = 0; count < 3; count += 1) ask("a", connection);
  await answered();
  expect(sentWrites()).toEqual(["/a/e, /a", "/a/e", "/a/e"]);
});

it("stamps no queue any more whose data another client writes, too", async () => {
  const connection = connect();
  saw(["a"], 1);
  errors.set("/a", BAD_VERSION);
  const refused = ask("a", connection);
  await answered();
  expect(refused.written.value).toEqual({ type: "refused" });
  sent = [];
  ask("a", connection);
  await answered();
  expect(sentWrites()).toEqual(["/a/e"]);
  saw(["a"], 1);
  sent = [];
  ask("a", connection);
  await answered();
  expect(sentWrites()).toEqual(["/a/e"]);
});

it("joins an entry whose caller needs the time only with a stamp, which tells it", async () => {
  const connection = connect();
  saw(["a", "b"], 2);
  saw(["c", "d"], 1);
  const queues = ["a", "b", "c", "d"];
  const asked = queues.map((queue) => ask(queue, connection, { needsTime: true }));
  await answered();
  expect(sentWrites()).toEqual(["/a/e", "/b/e", "/c/e, /c, /d/e, /d"]);
  const times = asked.map(({ written: { value } }) => value?.type === "done" && value.atMs);
  expect(times).toEqual([5, 5, 6, 6]);
});

it("sends a lone write as it is", async () => {
  const connection = connect();
  ask("a", connection);
  await answered();
  expect(sent).toEqual(["/a/e", "a?"]);
});

it("never joins two writes for one queue: their tokens differ, and rise", async () => {
  const connection = connect();
  saw(["a", "b", "c"], 2);
  const asked = ["a", "b", "a", "c"].map((queue) => ask(queue, connection));
  await answered();
  expect(sentWrites()).toEqual(["/a/e, /b/e", "/a/e, /c/e"]);
  const [first, , third] = tokens(asked);
  expect(third).toBeGreaterThan(first ?? 0n);
});

it("joins no queue that may be missing", async () => {
  const connection = connect();
  saw(["a", "b"], 2);
  for (const queue of ["a", "new", "b"]) ask(queue, connection);
  await answered();
  expect(sentWrites()).toEqual(["/a/e", "/new/e", "/b/e"]);
});

it("refuses all writes of a transaction where one is refused", async () => {
  const connection = connect();
  saw(["a", "b"], 1);
  errors.set("/b/e", NO_NODE);
  const joined = [ask("a", connection), ask("b", connection)];
  await answered();
  const refused = { type: "refused" };
  expect(joined.map(({ written }) => written.value)).toEqual([refused, refused]);
  sent = [];
  const separate = ["a", "b"].map((queue) => ask(queue, connection, { isSeparate: true }));
  await answered();
  expect(sent).toEqual(["/a/e", "a?", "/b/e", "b?"]);
  expect(separate.map(({ written }) => written.state)).toEqual(["resolved", "rejected"]);
});

it("joins removals, but not with writes on another connection", async () => {
  const [one, other] = [connect(), connect()];
  const left = [leave("a", one), leave("b", one), leave("c", other)];
  await answered();
  expect(sent).toEqual(["/a/e-gone, /b/e-gone", "/c/e-gone"]);
  const gone = { type: "done", path: null };
  expect(left.map(({ value }) => value)).toMatchObject([gone, gone, gone]);
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
  expect(sent.map((path) => path.split(", ").length)).toEqual([120, 120, 60]);
});

it("joins no more than 256 kB", async () => {
  const connection = connect();
  const queues = Array.from({ length: 6 }, (_, index) => `q${index}`);
  saw(queues, 2);
  for (const queue of queues) ask(queue, connection, { dataBytes: 100_000 });
  await answered();
  expect(sentWrites().map((path) => path.split(", ").length)).toEqual([2, 2, 2]);
});

it("sends at once what it was asked for, when a request must come behind", async () => {
  const connection = connect();
  ask("a", connection);
  writes.flush();
  void connection.send(exists("behind?"));
  await answered();
  expect(sent).toEqual(["/a/e", "a?", "behind?"]);
});

const MINUTE_MS = 60_000;
const QUIET = { childCount: 1, dataBytes: 0, version: 7 };
const IS_QUIET = { quietVersion: 7 };
const IS_THERE = { quietVersion: null };

describe("the queues that were there a moment ago", () => {
  it("knows a queue for a minute after it was seen", async () => {
    expect(known.guess("/a")).toBeNull();
    known.saw("/a", QUIET);
    await runtime.advance(MINUTE_MS - 1);
    expect(known.guess("/a")).toEqual(IS_QUIET);
    await runtime.advance(1);
    expect(known.guess("/a")).toBeNull();
  });

  it("forgets a queue that is gone", () => {
    known.saw("/a", QUIET);
    known.saw("/a", null);
    expect(known.guess("/a")).toBeNull();
  });

  it("takes a queue with several entries, or with data, for no quiet one", () => {
    known.saw("/a", { ...QUIET, childCount: 2 });
    known.saw("/b", { ...QUIET, dataBytes: 1 });
    expect([known.guess("/a"), known.guess("/b")]).toEqual([IS_THERE, IS_THERE]);
  });

  it("does not stamp a queue whose version would stand for any version", () => {
    known.saw("/a", { ...QUIET, version: -1 });
    expect(known.guess("/a")).toEqual(IS_THERE);
    known.saw("/a", { ...QUIET, version: -2 });
    expect(known.guess("/a")).toEqual({ quietVersion: -2 });
  });

  it("remembers that it may not write a queue, as long as the queue is there", () => {
    known.saw("/a", QUIET);
    known.sawRefusal("/a");
    known.saw("/a", QUIET);
    expect(known.guess("/a")).toEqual(IS_THERE);
    known.saw("/a", null);
    known.saw("/a", QUIET);
    expect(known.guess("/a")).toEqual(IS_QUIET);
  });

  it("takes no version twice: a stamp changes it, and an answer shows the new one", () => {
    known.saw("/a", QUIET);
    known.onStamp("/a");
    expect(known.guess("/a")).toEqual(IS_THERE);
    known.saw("/a", { ...QUIET, version: 8 });
    expect(known.guess("/a")).toEqual({ quietVersion: 8 });
  });

  it("forgets the queue that was seen longest ago beyond 10,000", () => {
    for (let index = 0; index <= 10_000; index += 1) known.saw(`/${index}`, QUIET);
    expect([known.guess("/0"), known.guess("/1")]).toEqual([null, IS_QUIET]);
  });
});
