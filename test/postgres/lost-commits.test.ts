/**
 * After a crash that may have lost commits, no name is granted until the longest lease is over. The
 * writer of the log is stopped, so an asynchronous commit is lost for certain.
 */

import type { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SCHEMA } from "../../src/stores/postgres/schema.generated.js";
import { LedgerFunctions } from "../fixtures/ledger-functions.js";
import { requestOf } from "../fixtures/ledger-script.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type PostgresServer, startPostgres } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";

const SECOND_US = 1_000_000;
const HOUR_US = 3_600 * SECOND_US;
const DAY_US = 24 * HOUR_US;
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];

let server: PostgresServer;
let client: Client;
let ledger: LedgerFunctions;

beforeAll(async () => {
  const settings = {
    wal_writer_delay: "10s",
    bgwriter_delay: "10s",
    synchronous_commit: "on",
    // Its commits would keep those that are to be lost.
    autovacuum: "off",
  };
  server = await startPostgres({ settings });
});

afterAll(async () => {
  await client?.end();
  await server?.close();
});

async function connect(): Promise<void> {
  client = await server.client();
  ledger = new LedgerFunctions(client, "s");
}

beforeEach(async () => {
  await connect();
  await client.query(`drop schema if exists holdfast cascade; ${SCHEMA}`);
  await client.end();
  await connect();
});

function mutex(key: string, owner: string, ttlUs: number = 30 * SECOND_US) {
  return requestOf(key, owner, { mode: "exclusive", ttlUs });
}

function renewal(key: string, owner: string) {
  const times = { ttlUs: 30 * SECOND_US, notAfterUs: 9e15, seenToken: 0 };
  return { type: "renew", key, owner, ...times } as const;
}

function releaseOf(key: string, owner: string) {
  return { type: "release", key, owner, tombstoneUs: 0, keep: null } as const;
}

async function crash(): Promise<void> {
  await server.kill();
  await server.start();
  await connect();
}

/** One backend is killed, so the server restarts all others: the marker is lost. */
async function crashBackend(): Promise<void> {
  const { rows } = await client.query("select pg_backend_pid() as pid");
  process.kill(rows[0].pid, "SIGKILL");
  // For a moment the server goes on as before.
  const isRecovered = async (): Promise<boolean> =>
    (await server.ask("select 1 from holdfast.marker")).length === 0;
  await waitUntil(isRecovered, { what: "the marker is lost" });
  await connect();
}

/** The log writer wakes up at times of its own, and would keep the commits that are to be lost. */
async function stopLogWriter(): Promise<void> {
  const text = "select pid from pg_stat_activity where backend_type = 'walwriter'";
  for (const { pid } of await server.ask(text)) process.kill(Number(pid), "SIGSTOP");
}

async function endQuarantine(): Promise<void> {
  await client.query("update holdfast.server set grants_from = 1");
  await client.query("update holdfast.marker set grants_from = 1");
}

describe("with durable commits", () => {
  it("grants free names at once after a crash of one backend", async () => {
    await ledger.do(mutex("l:a", "o1"));
    await crashBackend();
    expect(await ledger.do(mutex("l:a", "o2"))).toMatchObject({ type: "queued", ahead: 0 });
    expect(await ledger.do(mutex("l:b", "o3"))).toMatchObject({ type: "granted" });
  });

  async function ownerOf(key: string): Promise<unknown> {
    const { rows } = await client.query("select (lease).owner from holdfast.name where key = $1", [
      key,
    ]);
    return rows[0]?.owner;
  }

  it("may lose a release in a crash: the name stays with the former holder", async () => {
    await ledger.do(mutex("l:a", "o1"));
    await stopLogWriter();
    expect(await ledger.do(releaseOf("l:a", "o1"))).toMatchObject({ held: true });
    expect(await ownerOf("l:a")).toBeNull();
    await crash();
    expect(await ownerOf("l:a")).toBe("o1");
    const asked = { ...mutex("l:a", "o2"), enqueue: false };
    expect(await ledger.do(asked)).toMatchObject({ type: "busy", holder: {} });
    expect(await ledger.do(mutex("l:b", "o3"))).toMatchObject({ type: "granted" });
  });

  it("loses no release that has a grant after it", async () => {
    await ledger.do(mutex("l:a", "o1"));
    await stopLogWriter();
    await ledger.do(releaseOf("l:a", "o1"));
    expect(await ledger.do(mutex("l:a", "o2"))).toMatchObject({ type: "granted" });
    await crash();
    expect(await ownerOf("l:a")).toBe("o2");
  });

  it("loses no handoff and no mark", async () => {
    await ledger.do(mutex("l:a", "o1"));
    await ledger.do(mutex("l:a", "o2"));
    await ledger.do(mutex("l:b", "o3"));
    await stopLogWriter();
    // A commit that waits for the disk would keep the one before it.
    const keep = { ttlUs: HOUR_US, meta: "{}" };
    await ledger.do({ ...releaseOf("l:b", "o3"), keep });
    await crash();
    expect(await ledger.do(mutex("l:b", "o4"))).toMatchObject({ type: "marked" });
    await stopLogWriter();
    expect((await ledger.do(releaseOf("l:a", "o1"))).offerUs).toBeGreaterThan(0);
    await crash();
    expect(await ownerOf("l:a")).toBe("o2");
  });
});

describe("with the data of another server", () => {
  it.each(["system", "timeline"])("grants nothing for a while: another %s", async (what) => {
    await ledger.do(mutex("l:a", "o1"));
    // As in a restored dump, the marker is there.
    await client.query(`update holdfast.server set ${what} = 'another'`);
    await client.query(`update holdfast.marker set ${what} = 'another'`);
    await client.end();
    await connect();
    expect(await ledger.do(mutex("l:b", "o2"))).toMatchObject({ type: "queued", holder: null });
    expect(await ledger.do(renewal("l:a", "o1"))).toMatchObject({ type: "renewed" });
    expect(await ledger.do(mutex("l:c", "o3"))).toMatchObject({ type: "queued", holder: null });
  });

  it("grants nothing after a crash within that while, which loses nothing by itself", async () => {
    await client.query("update holdfast.server set timeline = 'another'");
    const asked = { ...mutex("l:a", "o1"), enqueue: false };
    const first = await ledger.do(asked);
    expect(first).toMatchObject({ type: "busy", holder: null });
    await crashBackend();
    const second = await ledger.do(asked);
    expect(second).toMatchObject({ type: "busy", holder: null });
    expect((second as { dueUs: number }).dueUs).toBeLessThan((first as { dueUs: number }).dueUs);
    await endQuarantine();
    expect(await ledger.do(asked)).toMatchObject({ type: "granted" });
    await crashBackend();
    expect(await ledger.do(mutex("l:b", "o2"))).toMatchObject({ type: "granted" });
  });

  it("names the wait as such where a holder leaves room for the request", async () => {
    const permit = (owner: string) => requestOf("l:s", owner, { limit: 2, ttlUs: 30 * SECOND_US });
    const outage = { holder: null, dueUs: expect.any(Number) };
    await ledger.do(permit("o1"));
    await client.query("update holdfast.server set timeline = 'another'");
    await client.query("delete from holdfast.marker");
    await client.end();
    await connect();
    const busy = await ledger.do({ ...permit("o2"), enqueue: false });
    expect(busy).toMatchObject({ type: "busy", ...outage });
    expect(await ledger.do(permit("o2"))).toMatchObject({ type: "queued", ...outage });
    expect(await ledger.do(permit("o2"))).toMatchObject({ type: "queued", ahead: null, ...outage });
    const reply = await ledger.do({ type: "heartbeat", key: "l:s", client: "o2" });
    expect(reply).toMatchObject({ waiting: 1, ...outage });
    // A writer waits for the holder, whatever the store grants.
    const writer = { ...mutex("l:s", "o3"), enqueue: false };
    expect(await ledger.do(writer)).toMatchObject({ type: "busy", holder: { mode: "shared" } });
  });

  it("never waits for longer than the longest lease, also if the clock went back", async () => {
    await client.query("update holdfast.server set grants_from = 9e15");
    const busy = await ledger.do({ ...mutex("l:a", "o1"), enqueue: false });
    expect(busy).toMatchObject({ type: "busy", holder: null });
    expect((busy as { dueUs: number }).dueUs).toBeLessThanOrEqual(60 * SECOND_US);
  });
});

describe("with relaxed commits", () => {
  /** The names a and b are held; the grant of b is lost in the crash. */
  async function loseGrant(): Promise<void> {
    await client.query("set synchronous_commit = off");
    expect(await ledger.do(mutex("l:a", "a1"))).toMatchObject({ type: "granted" });
    await stopLogWriter();
    expect(await ledger.do(mutex("l:b", "b1"))).toMatchObject({ type: "granted" });
    await crash();
    await client.query("set synchronous_commit = off");
    const { rows } = await client.query(
      "select key from holdfast.name where (lease).owner is not null",
    );
    expect(rows).toEqual([{ key: "l:a" }]);
  }

  it("keeps the first grant, which notes that durability is relaxed", loseGrant);

  it("grants nothing until the longest lease is over", async () => {
    await loseGrant();
    const busy = await ledger.do({ ...mutex("l:b", "b2"), enqueue: false });
    expect(busy).toMatchObject({ type: "busy", holder: null });
    const queued = await ledger.do(mutex("l:b", "b2"));
    expect(queued).toMatchObject({ type: "queued", ahead: 0, holder: null });
    for (const reply of [busy, queued]) {
      const { dueUs = 0 } = reply as { dueUs?: number };
      expect(dueUs).toBeGreaterThan(50 * SECOND_US);
      expect(dueUs).toBeLessThanOrEqual(60 * SECOND_US);
    }
    const batch = [1, 2, 3].map((at) => ({ ...mutex(`l:new-${at}`, "n"), enqueue: false }));
    const { replies } = await ledger.execute(batch);
    expect(replies.map((reply) => "type" in reply && reply.type)).toEqual(["busy", "busy", "busy"]);
    await endQuarantine();
    const reply = await ledger.do({ type: "heartbeat", key: "l:b", client: "b2" });
    expect(reply).toMatchObject({ grants: [{ owner: "b2" }] });
    expect(await ledger.do(mutex("l:new-1", "n"))).toMatchObject({ type: "granted" });
  });

  it("lets the holders it knows renew, and hands nothing off", async () => {
    await loseGrant();
    expect(await ledger.do(renewal("l:a", "a1"))).toMatchObject({ type: "renewed" });
    expect(await ledger.do(renewal("l:b", "b1"))).toMatchObject({ type: "gone" });
    expect(await ledger.do(mutex("l:a", "a2"))).toMatchObject({ type: "queued" });
    const released = await ledger.do(releaseOf("l:a", "a1"));
    expect(released).toMatchObject({ held: true, offerUs: 0 });
    expect(await ledger.do(mutex("l:a", "a3"))).toMatchObject({ type: "queued", ahead: 1 });
    await endQuarantine();
    const [grant] = (await ledger.do({ type: "heartbeat", key: "l:a", client: "a2" })).grants;
    expect(grant).toMatchObject({ owner: "a2" });
  });

  it("grants at once to a client that says that no commit is lost", async () => {
    await loseGrant();
    expect(await ledger.do(mutex("l:b", "b2"), true)).toMatchObject({ type: "granted" });
    expect(await ledger.do(mutex("l:c", "c1"))).toMatchObject({ type: "queued", holder: null });
  });

  it("remembers the longest ttl, up to a day", async () => {
    for (const [ttlUs, countedUs] of [
      [3 * HOUR_US, 3 * HOUR_US],
      [HOUR_US, 3 * HOUR_US],
      [400 * DAY_US, DAY_US],
    ] as const) {
      await client.query("set synchronous_commit = off");
      await endQuarantine();
      expect(await ledger.do(mutex(`l:${ttlUs}`, "o", ttlUs))).toMatchObject({ type: "granted" });
      await crash();
      const busy = await ledger.do({ ...mutex("l:x", "x"), enqueue: false });
      const { dueUs } = busy as { dueUs: number };
      expect(dueUs).toBeGreaterThan(countedUs - 10 * SECOND_US);
      expect(dueUs).toBeLessThanOrEqual(countedUs);
    }
  });

  it("grants at once after an orderly restart, and goes on with a quarantine", async () => {
    await client.query("set synchronous_commit = off");
    await ledger.do(mutex("l:a", "a1"));
    await server.stop();
    await server.start();
    await connect();
    expect(await ledger.do(mutex("l:b", "b1"))).toMatchObject({ type: "granted" });
    await crash();
    expect(await ledger.do(mutex("l:c", "c1"))).toMatchObject({ type: "queued", holder: null });
    await server.stop();
    await server.start();
    await connect();
    expect(await ledger.do(mutex("l:d", "d1"))).toMatchObject({ type: "queued", holder: null });
  });
});

describe("with a clock that is set", () => {
  const clocks = makeClocks();
  const clock = clocks?.clock("lost-commits");
  let timed: PostgresServer;
  let asked = 0;

  beforeAll(async () => {
    timed = await startPostgres({ env: { ...clock?.env } });
  });
  afterAll(async () => {
    await timed?.close();
    clocks?.end();
  });
  beforeEach(async (context) => {
    if (!clock) return context.skip("a C compiler and LD_PRELOAD are needed");
    await clock.shift(0, timed);
    await timed.ask(`drop schema if exists holdfast cascade; ${SCHEMA}`);
  });

  /** The reply to one command in a new session. */
  async function ask(command: ReturnType<typeof mutex>): Promise<{ type: string; dueUs?: number }> {
    const session = await timed.client();
    try {
      return await new LedgerFunctions(session, "s").do({ ...command, enqueue: false });
    } finally {
      await session.end();
    }
  }

  /** As after a promotion: the rows are those of another timeline. */
  async function promoted(): Promise<void> {
    await timed.ask("update holdfast.server set timeline = 'another'");
    await timed.ask("delete from holdfast.marker");
  }

  /** How long free names wait after a promotion. It ends that wait. */
  async function waitUs(): Promise<number> {
    await promoted();
    asked += 1;
    const { type, dueUs = 0 } = await ask(mutex(`l:free-${asked}`, "f"));
    expect(type).toBe("busy");
    await timed.ask("update holdfast.server set grants_from = 1");
    await timed.ask("update holdfast.marker set grants_from = 1");
    expect(await ask(mutex(`l:free-${asked}`, "f", SECOND_US))).toMatchObject({ type: "granted" });
    return dueUs;
  }

  it("grants at once where names were granted before the clock was set back", async () => {
    await clock?.shift(HOUR_MS, timed);
    await promoted();
    expect(await ask(mutex("l:a", "a"))).toMatchObject({ type: "busy", holder: null });
    await clock?.shift(HOUR_MS + 2 * MINUTE_MS, timed);
    expect(await ask(mutex("l:a", "a"))).toMatchObject({ type: "granted" });
    await clock?.shift(0, timed);
    expect(await ask(mutex("l:b", "b"))).toMatchObject({ type: "granted" });
    // The logged table knows it, too.
    await timed.ask("delete from holdfast.marker");
    expect(await ask(mutex("l:c", "c"))).toMatchObject({ type: "granted" });
  });

  it("waits once more for the longest ttl if the clock is set back in between", async () => {
    await clock?.shift(HOUR_MS, timed);
    await promoted();
    expect(await ask(mutex("l:a", "a"))).toMatchObject({ type: "busy", holder: null });
    await clock?.shift(0, timed);
    const { dueUs = 0 } = await ask(mutex("l:a", "a"));
    expect(dueUs).toBeGreaterThan(50 * SECOND_US);
    expect(dueUs).toBeLessThanOrEqual(60 * SECOND_US);
    await clock?.shift(2 * MINUTE_MS, timed);
    expect(await ask(mutex("l:a", "a"))).toMatchObject({ type: "granted" });
  });

  it("forgets a ttl that no lease had in this week and in the last one", async () => {
    await ask(mutex("l:a", "a", DAY_US));
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
    await clock?.shift(7 * DAY_MS, timed);
    await ask(mutex("l:b", "b", HOUR_US));
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
    await clock?.shift(14 * DAY_MS, timed);
    await ask(mutex("l:c", "c"));
    const second = await waitUs();
    expect(second).toBeLessThanOrEqual(HOUR_US);
    expect(second).toBeGreaterThan(HOUR_US - 10 * SECOND_US);
    await clock?.shift(28 * DAY_MS, timed);
    await ask(mutex("l:d", "d"));
    expect(await waitUs()).toBeLessThanOrEqual(60 * SECOND_US);
  });

  it("notes a ttl again in each week, also in a session that has noted it", async () => {
    const session = await timed.client();
    const functions = new LedgerFunctions(session, "s");
    for (const week of [0, 1, 2, 3]) {
      await clock?.shift(7 * week * DAY_MS, timed);
      const held = await functions.do(mutex(`l:${week}`, "o", DAY_US));
      expect(held).toMatchObject({ type: "granted" });
    }
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
    // A clock that is set back forgets nothing.
    await clock?.shift(0, timed);
    expect(await functions.do(mutex("l:back", "o", DAY_US))).toMatchObject({ type: "granted" });
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
    await session.end();
  });

  /** A holder that outlives the test, and a waiter whose lease would last for a day. */
  async function dayLongWaiter(functions: LedgerFunctions): Promise<void> {
    const lasting = { ttlUs: 400 * DAY_US, heartbeatUs: 400 * DAY_US };
    const held = await functions.do({ ...mutex("l:m", "holder"), ...lasting });
    expect(held).toMatchObject({ type: "granted" });
    const queued = await functions.do({ ...mutex("l:m", "waiter"), ...lasting, ttlUs: DAY_US });
    expect(queued).toMatchObject({ type: "queued", ahead: 0 });
  }

  /** The weeks pass, each with a short lease of another client. */
  async function passWeeks(count: number): Promise<void> {
    for (let week = 1; week <= count; week += 1) {
      await clock?.shift(7 * week * DAY_MS, timed);
      await ask(mutex(`l:week-${week}`, "o", SECOND_US));
    }
  }

  it("remembers the ttl of a waiter for as long as it waits", async () => {
    const session = await timed.client();
    const functions = new LedgerFunctions(session, "s");
    await dayLongWaiter(functions);
    await passWeeks(4);
    // The standby may know neither the handoff nor the confirm.
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
    await functions.do(releaseOf("l:m", "waiter"));
    await clock?.shift(5 * 7 * DAY_MS, timed);
    await ask(mutex("l:later", "o", SECOND_US));
    await clock?.shift(6 * 7 * DAY_MS, timed);
    await ask(mutex("l:later", "p", SECOND_US));
    expect(await waitUs()).toBeLessThanOrEqual(60 * SECOND_US);
    await session.end();
  });

  /** As if no lease had been longer than a minute in this week and the last one. */
  async function forgetLongest(): Promise<void> {
    await timed.ask("update holdfast.server set longest = 60000000, last_longest = 60000000");
    await timed.ask("update holdfast.marker set longest = 60000000");
  }

  const MAKES: readonly [string, (functions: LedgerFunctions) => Promise<unknown>][] = [
    ["a handoff", (functions) => functions.do(releaseOf("l:m", "holder"))],
    [
      "a handoff in a batch",
      (functions) => functions.execute([releaseOf("l:m", "holder"), mutex("l:n", "o", SECOND_US)]),
    ],
  ];
  const EXTENDS: readonly [string, (functions: LedgerFunctions) => Promise<unknown>][] = [
    ["a confirm", (functions) => functions.do({ type: "confirm", key: "l:m", owner: "waiter" })],
    [
      "a confirm in a batch",
      (functions) =>
        functions.execute([
          { type: "confirm", key: "l:m", owner: "waiter" },
          mutex("l:n", "o", SECOND_US),
        ]),
    ],
    ["a repeated request", (functions) => functions.do(mutex("l:m", "waiter", SECOND_US))],
  ];

  it.each([...MAKES, ...EXTENDS])("notes the ttl of the lease with %s", async (what, act) => {
    const first = await timed.client();
    await dayLongWaiter(new LedgerFunctions(first, "s"));
    if (EXTENDS.some(([name]) => name === what)) {
      await new LedgerFunctions(first, "s").do(releaseOf("l:m", "holder"));
    }
    await first.end();
    await forgetLongest();
    const session = await timed.client();
    const functions = new LedgerFunctions(session, "s");
    // The session knows that names are granted, and notes no more for a short lease.
    await functions.do(mutex("l:short", "o", SECOND_US));
    await act(functions);
    await session.end();
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
  });

  it("remembers the ttl of a session that noted it before the clock jumped", async () => {
    const session = await timed.client();
    const functions = new LedgerFunctions(session, "s");
    await functions.do(mutex("l:a", "a", DAY_US));
    await clock?.shift(100 * DAY_MS, timed);
    await ask(mutex("l:ahead", "o", SECOND_US));
    await clock?.shift(0, timed);
    await ask(mutex("l:back", "o", SECOND_US));
    expect(await functions.do(mutex("l:b", "b", DAY_US))).toMatchObject({ type: "granted" });
    expect(await waitUs()).toBeGreaterThan(DAY_US - 10 * SECOND_US);
    await session.end();
  });

  it("forgets relaxed durability in the same way", async () => {
    const session = await timed.client();
    await session.query("set synchronous_commit = off");
    await new LedgerFunctions(session, "s").do(mutex("l:a", "a"));
    await session.end();
    const crashed = async (): Promise<string> => {
      await timed.ask("delete from holdfast.marker");
      const { type } = await ask(mutex("l:b", "b", SECOND_US));
      await timed.ask("update holdfast.server set grants_from = 1");
      await timed.ask("update holdfast.marker set grants_from = 1");
      return type;
    };
    for (const [week, type] of [
      [0, "busy"],
      [1, "busy"],
      [2, "granted"],
    ] as const) {
      await clock?.shift(7 * week * DAY_MS, timed);
      await ask(mutex(`l:week-${week}`, "o", SECOND_US));
      expect([week, await crashed()]).toEqual([week, type]);
    }
  });
});
