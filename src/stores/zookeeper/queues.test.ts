import { beforeEach, describe, expect, it } from "vitest";
import { eventFrame } from "../../../simulation/zookeeper/zookeeper-protocol.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { ZookeeperDouble } from "../../../test/fixtures/zookeeper-double.js";
import type { Listing, QueueChange } from "../../families/session/sequencer.js";
import { KnownQueues } from "./entry-batch.js";
import { serverError } from "./errors.js";
import { Layout, Zxid } from "./layout.js";
import { markData, ServerClock } from "./marks.js";
import { QueueReader, QueueWatches } from "./queues.js";
import { WatchingSession } from "./watches.js";
import type { Connection } from "./wire/connection.js";
import { Operation, type Request } from "./wire/requests.js";

const NO_NODE = -101;
const LAST = 2 ** 31 - 1;
const LOCK = { space: "once", name: "a" } as const;

const layout = new Layout("", "", "mutex");
const queue = layout.queue(LOCK);
const nameOf = (id: string, sequence: number): string =>
  `_c_${id}-lock-${String(sequence).padStart(10, "0")}`;

let runtime: ManualRuntime;
let reader: QueueReader;
/** The children of the queue: the transaction that made each, and its data. */
let children: Map<string, { readonly czxid: bigint; readonly data: Buffer }>;
/** Happens right after the children were listed. */
let afterListing: () => void;

beforeEach(() => {
  runtime = new ManualRuntime();
  reader = new QueueReader(layout, new ServerClock(runtime.clock), new KnownQueues(runtime.clock));
  children = new Map();
  afterListing = () => {};
});

function enter(id: string, sequence: number): void {
  const czxid = BigInt(children.size + 1);
  children.set(nameOf(id, sequence), { czxid, data: Buffer.alloc(0) });
}

/** The first entry leaves, with a mark in its place. */
function finish(): void {
  const [[name, { czxid }] = ["", { czxid: 0n }]] = children;
  children.delete(name);
  children.set(`done-${czxid}`, { czxid: 9n, data: markData(60_000, "") });
}

const connection = {
  send: async ({ operation, path }: Request<unknown>): Promise<unknown> => {
    const zxid = 10n;
    const child = children.get(path.slice(queue.length + 1));
    const stat = child && { czxid: child.czxid, createdMs: Date.now(), ephemeralOwner: 1n };
    if (operation === Operation.exists) return { stat: stat ?? null, zxid };
    if (operation === Operation.getData) {
      if (!child) throw serverError(NO_NODE, path);
      return { data: child.data, stat, zxid };
    }
    const names = [...children.keys()];
    afterListing();
    afterListing = () => {};
    return { names, stat: { childCount: names.length, dataBytes: 0, version: 0 }, zxid };
  },
} as unknown as Connection;

describe("a once that is done while the queue is read", () => {
  it.each([
    ["by its numbers", 1, 2, "plain"],
    ["with its texts", 1, 2, "texts"],
    ["by its transactions, after the last number", LAST, LAST, "plain"],
    ["by its transactions, after a negative number", -(2 ** 31), LAST, "plain"],
  ] as const)("%s, never looks as if it had ended without a mark", async (...given) => {
    const [, first, second, look] = given;
    enter("x", first);
    enter("y", second);
    afterListing = finish;
    const { entries, mark } = await reader.read(connection, LOCK, look);
    const isListed = entries.some(({ id }) => id === nameOf("x", first));
    expect(isListed || mark !== null).toBe(true);
  });
});

const MUTEX = { space: "lock", name: "a" } as const;
const READERS = [1, 2].map((number) => `_c_${number}.s.1.--lock-000000000${number}`);
const WRITER = "_c_3-lock-0000000003";

describe("the watches on a queue", () => {
  let server: ZookeeperDouble;
  let watches: QueueWatches;
  let listing: Listing;
  let told: QueueChange[];

  beforeEach(async () => {
    const runtime = new ManualRuntime();
    server = new ZookeeperDouble();
    told = [];
    const layout = new Layout("", "", "mutex");
    const reader = new QueueReader(
      layout,
      new ServerClock(runtime.clock),
      new KnownQueues(runtime.clock),
    );
    const session = new WatchingSession(server.ensemble(runtime), "the test");
    watches = new QueueWatches({ session, layout, reader, timers: runtime.timers });
    for (const id of [...READERS, WRITER]) server.znodes.set(`/a/${id}`, "");
    listing = await session.use((connection) => reader.read(connection, MUTEX, "plain"), 100);
  });

  const tell = (change: QueueChange): void => void told.push(change);

  async function leave(id: string): Promise<void> {
    server.znodes.delete(`/a/${id}`);
    server.sessions.at(-1)?.send(eventFrame("deleted", `/a/${id}`));
    await settled();
  }

  /** The entries of the listings that were told. */
  const shown = () =>
    told.map((change) =>
      change.type === "left" ? change.listing.entries.map(({ id }) => id) : [],
    );

  it("show the queue without all holders that have left", async () => {
    watches.watchLeaving(MUTEX, listing, tell);
    await settled();
    const [first = "", second = ""] = READERS;
    await leave(second);
    await leave(first);
    expect(shown()).toEqual([[first, WRITER], [WRITER]]);
    const [change] = told;
    const isLater = change?.type === "left" && listing.moment.isBefore(change.listing.moment);
    expect(isLater, "the queue that is shown is of a later moment").toBe(true);
  });

  it("do not tell of entries behind the holders", async () => {
    watches.watchLeaving(MUTEX, listing, tell);
    await settled();
    await leave(WRITER);
    expect(told).toEqual([]);
  });

  it("list on the server that told the change, and bring any other one up to date", async () => {
    const watch = watches.watchLeaving(MUTEX, listing, tell);
    await settled();
    const sent = () => server.sessions.at(-1)?.requests.map(({ type }) => type) ?? [];
    await watch.list(100);
    expect(sent()).not.toContain("sync");
    server.sessions[0]?.end();
    await settled();
    await watch.list(100);
    expect(sent()).toContain("sync");
  });

  it("tell of data that was written after the listing, where that is asked for", async () => {
    const [id = ""] = READERS;
    const written = { type: "entry", id, orWritten: true } as const;
    // The double says that its znodes were written in the transaction 5.
    const before = { ...listing, moment: new Zxid(4n) };
    watches.watchEntry(MUTEX, written, listing, tell);
    watches.watchEntry(MUTEX, { ...written, orWritten: false }, before, tell);
    await settled();
    expect(told).toEqual([]);
    watches.watchEntry(MUTEX, written, before, tell);
    await settled();
    expect(told).toEqual([{ type: "changed", moment: null }]);
  });
});
