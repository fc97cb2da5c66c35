import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import type { Listing, QueueChange, QueueWatch } from "../../families/session/sequencer.js";
import { NO_LIMIT } from "../../rules/fits.js";
import type { EtcdCalls } from "./calls.js";
import { Layout, Revision, revisionOf } from "./layout.js";
import { Queues } from "./queues.js";
import type { EtcdWatches, WatchListener, WatchTarget } from "./watches.js";
import type { RangeRequest, WatchEvent } from "./wire/messages.js";

const lock = { space: "lock", name: "m" } as const;
let runtime: ManualRuntime;
let log: string[];
let queues: Queues;
/** The revision that the member has that is asked. */
let memberRevision: bigint;
let stream: WatchListener;

beforeEach(() => {
  runtime = new ManualRuntime();
  log = [];
  const opener = {
    open({ since }: WatchTarget, listener: WatchListener) {
      log.push(`open after ${since}`);
      stream = listener;
      return { close: () => log.push("close") };
    },
  } as unknown as EtcdWatches;
  memberRevision = 7n;
  const calls = {
    range: async ({ serializable }: RangeRequest) => {
      log.push(serializable ? "list by a member" : "list by the leader");
      const revision = serializable ? memberRevision : 7n;
      return { header: { revision, raftTerm: 2n }, kvs: [] };
    },
  } as unknown as EtcdCalls;
  queues = new Queues({ calls, layout: new Layout(""), watches: opener, timers: runtime.timers });
});

/** Ids end with the revision that made their entries: `b5`. */
function listing(revision: number, ...ids: string[]): Listing {
  const entries = ids.map((id) => {
    const request = { mode: "exclusive", weight: 1, limit: NO_LIMIT } as const;
    return { ...request, id, token: BigInt(id.slice(1)), session: "", text: null };
  });
  return { moment: new Revision(BigInt(revision)), entries, mark: null };
}

function watch(seen: Listing): QueueWatch {
  return queues.watchLeaving(lock, seen, (change) => log.push(textOf(change)));
}

function textOf(change: QueueChange): string {
  if (change.type !== "left") return change.type;
  const { moment, entries } = change.listing;
  return `left at ${revisionOf(moment)}: ${entries.map(({ id }) => id).join(" ")}`;
}

function deleted(revision: number, id: string): void {
  const kv = { key: Buffer.from(`m/${id}`), modRevision: BigInt(revision) } as WatchEvent["kv"];
  stream.onEvents([{ type: "Delete", kv }]);
}

function taken(): string[] {
  return log.splice(0);
}

describe("a watch on the entries that leave", () => {
  it("begins after the listing, and tells the entries that are left", () => {
    watch(listing(5, "a3", "b5"));
    deleted(9, "a3");
    expect(taken()).toEqual(["open after 5", "left at 9: b5"]);
  });

  it("adds up what it tells", () => {
    watch(listing(5, "a3", "b5", "c6"));
    deleted(8, "b5");
    deleted(9, "a3");
    expect(taken()).toEqual(["open after 5", "left at 8: a3 c6", "left at 9: c6"]);
  });

  it("tells nothing of longer names", () => {
    watch(listing(5, "a3", "b5"));
    deleted(9, "below/a3");
    expect(taken()).toEqual(["open after 5"]);
  });

  it("lists the queue as of the last revision that it told", async () => {
    const { list } = watch(listing(5, "a3", "b5"));
    stream.onBehind(7n);
    await list(100);
    expect(taken()).toEqual(["open after 5", "changed", "list by a member"]);
  });

  it("lists the queue by the leader if the member has not that revision", async () => {
    const { list } = watch(listing(5, "a3", "b5"));
    stream.onBehind(7n);
    memberRevision = 6n;
    await list(100);
    const lists = ["list by a member", "list by the leader"];
    expect(taken()).toEqual(["open after 5", "changed", ...lists]);
  });

  it("tells a mere change until a listing from after its start comes", async () => {
    watch(listing(5, "a3", "b5"));
    stream.onBehind(7n);
    deleted(8, "a3");
    expect(taken()).toEqual(["open after 5", "changed", "changed"]);
    watch(listing(7, "a3", "c7"));
    await runtime.advance(0);
    expect(taken()).toEqual(["left at 8: c7"]);
  });

  it("is not behind a user whose listing came after its start", () => {
    watch(listing(5, "a3", "b5")).close();
    watch(listing(7, "a3", "b5"));
    stream.onBehind(6n);
    deleted(8, "a3");
    expect(taken()).toEqual(["open after 5", "left at 8: b5"]);
  });

  it("is not used with a listing from before its start", () => {
    watch(listing(5, "a3", "b5")).close();
    stream.onBehind(8n);
    watch(listing(7, "a3", "b5"));
    expect(taken()).toEqual(["open after 5", "close", "open after 7"]);
  });

  it("is over when its stream breaks", () => {
    watch(listing(5, "a3", "b5"));
    stream.onBroken();
    watch(listing(7, "a3", "b5"));
    expect(taken()).toEqual(["open after 5", "close", "broken", "open after 7"]);
  });
});

describe("a watch that was closed a moment ago", () => {
  beforeEach(() => {
    watch(listing(5, "a3", "b5")).close();
    taken();
  });

  it("serves the next user", () => {
    deleted(11, "b5");
    watch(listing(14, "a10", "b14"));
    deleted(16, "a10");
    expect(taken()).toEqual(["left at 16: b14"]);
  });

  it("remembers deletions that it told before the listing came", async () => {
    deleted(16, "a10");
    watch(listing(14, "a10", "b14"));
    await runtime.advance(0);
    expect(taken()).toEqual(["left at 16: b14"]);
  });

  it("takes no entry of the listing for an earlier one with the same id", () => {
    deleted(7, "a3");
    const seen = listing(9, "a3", "b9");
    watch(seen);
    deleted(12, "c6");
    expect(taken()).toEqual(["left at 12: a3 b9"]);
  });

  it("does not serve a listing that is older than its last one", () => {
    watch(listing(9, "a3", "b5")).close();
    watch(listing(8, "a3", "b5"));
    expect(taken()).toEqual(["close", "open after 8"]);
  });

  it("ends after a quarter of a second", async () => {
    await runtime.advance(240);
    expect(taken()).toEqual([]);
    await runtime.advance(20);
    expect(taken()).toEqual(["close"]);
  });

  it("ends when it tells more than its process needs", () => {
    deleted(7, "a3");
    deleted(8, "b5");
    expect(taken()).toEqual([]);
    deleted(9, "c6");
    expect(taken()).toEqual(["close"]);
  });
});

describe("a watch on one entry", () => {
  it("begins at the present, and is listed for what came before", async () => {
    const obstacle = { type: "entry", id: "a3", orWritten: false } as const;
    const seen = listing(5, "a3", "b5");
    const { list } = queues.watchEntry(lock, obstacle, seen, (change) => log.push(textOf(change)));
    stream.onBehind(7n);
    await list(100);
    expect(taken()).toEqual(["open after 5", "changed", "list by a member"]);
  });
});
