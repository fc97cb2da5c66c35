import { beforeEach, describe, expect, it } from "vitest";
import { eventFrame } from "../../../simulation/zookeeper/zookeeper-protocol.js";
import { ManualPort, settled } from "../../../test/fixtures/manual-port.js";
import { ZookeeperDouble } from "../../../test/fixtures/zookeeper-double.js";
import type { Listing, QueueChange } from "../../families/session/sequencer.js";
import { KnownQueues } from "./known-queues.js";
import { Layout } from "./layout.js";
import { QueueReader } from "./queue-reader.js";
import { QueueWatches } from "./queue-watches.js";
import { ServerClock } from "./server-clock.js";
import { WatchingSession } from "./watching-session.js";
import { Zxid } from "./zxid.js";

const LOCK = { space: "lock", name: "a" } as const;
const READERS = [1, 2].map((number) => `_c_${number}.s.1.--lock-000000000${number}`);
const WRITER = "_c_3-lock-0000000003";

describe("the watches on a queue", () => {
  let server: ZookeeperDouble;
  let watches: QueueWatches;
  let listing: Listing;
  let told: QueueChange[];

  beforeEach(async () => {
    const port = new ManualPort();
    server = new ZookeeperDouble();
    told = [];
    const layout = new Layout("", "", "mutex");
    const reader = new QueueReader(
      layout,
      new ServerClock(port.clock),
      new KnownQueues(port.clock),
    );
    const session = new WatchingSession(server.ensemble(port), "the test");
    watches = new QueueWatches({ session, layout, reader, timers: port.timers });
    for (const id of [...READERS, WRITER]) server.znodes.set(`/a/${id}`, "");
    listing = await session.use((connection) => reader.read(connection, LOCK, "plain"), 100);
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
    watches.watchLeaving(LOCK, listing, tell);
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
    watches.watchLeaving(LOCK, listing, tell);
    await settled();
    await leave(WRITER);
    expect(told).toEqual([]);
  });

  it("list on the server that told the change, and bring any other one up to date", async () => {
    const watch = watches.watchLeaving(LOCK, listing, tell);
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
    watches.watchEntry(LOCK, written, listing, tell);
    watches.watchEntry(LOCK, { ...written, orWritten: false }, before, tell);
    await settled();
    expect(told).toEqual([]);
    watches.watchEntry(LOCK, written, before, tell);
    await settled();
    expect(told).toEqual([{ type: "changed", moment: null }]);
  });
});
