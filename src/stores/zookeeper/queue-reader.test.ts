import { beforeEach, describe, expect, it } from "vitest";
import { ManualPort } from "../../../test/fixtures/manual-port.js";
import { KnownQueues } from "./known-queues.js";
import { Layout } from "./layout.js";
import { markData } from "./mark.js";
import { QueueReader } from "./queue-reader.js";
import { ServerClock } from "./server-clock.js";
import type { Connection } from "./wire/connection.js";
import { Operation, type Request } from "./wire/requests.js";
import { serverError } from "./wire/zookeeper-error.js";

const NO_NODE = -101;
const LAST = 2 ** 31 - 1;
const LOCK = { space: "once", name: "a" } as const;

const layout = new Layout("", "", "mutex");
const queue = layout.queue(LOCK);
const nameOf = (id: string, sequence: number): string =>
  `_c_${id}-lock-${String(sequence).padStart(10, "0")}`;

let port: ManualPort;
let reader: QueueReader;
/** The children of the queue: the transaction that made each, and its data. */
let children: Map<string, { readonly czxid: bigint; readonly data: Buffer }>;
/** Happens right after the children were listed. */
let afterListing: () => void;

beforeEach(() => {
  port = new ManualPort();
  reader = new QueueReader(layout, new ServerClock(port.clock), new KnownQueues(port.clock));
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
