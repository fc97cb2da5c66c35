/**
 * The work of a command in the shared server must not grow with the number of holders and waiters.
 * The script counts its work here: a unit for each call, each argument and each element of a
 * reply.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Acquire, Command } from "../../src/rules/ledger-command.js";
import { changedScripts, LedgerScript, requestOf } from "../fixtures/ledger-script.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const FEW = 300;
const MANY = 5_000;
const EXCLUSIVE = { mode: "exclusive" } as const;
const UNCOUNTED = "local call, try, sub, byte = redis.call, redis.pcall, string.sub, string.byte";
const COUNTED = `local function counted(run)
  return function(...)
    local answer = run(...)
    local size = type(answer) == 'table' and #answer or 1
    redis.call('INCRBY', 'work', 1 + select('#', ...) + size)
    return answer
  end
end
local call, try, sub, byte = counted(redis.call), counted(redis.pcall), string.sub, string.byte`;

let server: RedisServer;
let client: Redis;
let ledgers = 0;

beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.port);
});

afterAll(async () => {
  client?.disconnect();
  await server?.close();
});

function openLedger(): LedgerScript {
  const scripts = changedScripts((script) => {
    const counting = script.replace(UNCOUNTED, COUNTED);
    expect(counting).toContain(COUNTED);
    return counting;
  });
  ledgers += 1;
  return new LedgerScript(client, `{hf:work-${ledgers}}`, scripts);
}

/**
 * The least work of some commands of a kind: one command in 32 also looks for unreleased names. The
 * first of several is not counted: it may be the only one that finds no tombstone of the others.
 */
async function leastWorkOf(ledger: LedgerScript, commands: readonly Command[]): Promise<number> {
  const [first, ...others] = commands;
  if (first) await ledger.do(first);
  return workOf(ledger, others);
}

async function workOf(ledger: LedgerScript, commands: readonly Command[]): Promise<number> {
  const works: number[] = [];
  for (const command of commands) {
    await client.set("work", 0);
    await ledger.do(command);
    works.push(Number(await client.get("work")));
  }
  return Math.min(...works);
}

const KEY = "l:x";
const about = (owner: string) => ({ key: KEY, owner });
const several = <T>(one: (number: number) => T): T[] =>
  Array.from({ length: 9 }, (_, at) => one(at));
const reader = (number: number): Acquire => requestOf(KEY, `reader-${number}`);
const waiter = (number: number): Acquire => requestOf(KEY, `waiter-${number}`, EXCLUSIVE);

describe("the work of a command does not grow with the holders and waiters", () => {
  const crowds: { readonly ledger: LedgerScript; readonly tokens: readonly number[] }[] = [];
  beforeAll(async () => {
    for (const count of [FEW, MANY]) {
      const ledger = openLedger();
      await ledger.crowd(count, reader);
      await ledger.crowd(count, waiter);
      const { holders } = await ledger.do({ type: "inspect", key: KEY });
      crowds.push({ ledger, tokens: holders.map(({ token }) => token) });
    }
  });

  type Make = (number: number, token: number) => Command;
  const kinds: readonly [string, Make][] = [
    // Not the waiter at the head: every command reads it anyway, which saves a call.
    ["heartbeat", (at) => ({ type: "heartbeat", key: KEY, client: `waiter-${100 + at}` })],
    ["heartbeat of a holder", (at) => ({ type: "heartbeat", key: KEY, client: `reader-${at}` })],
    ["renew", (at) => renewOf(`reader-${at}`)],
    ["release", (at) => releaseOf(`reader-${at}`)],
    ["release of a waiter", (at) => releaseOf(`waiter-${100 + at}`)],
    ["acquire", (at) => requestOf(KEY, `late-${at}`, EXCLUSIVE)],
    ["acquire again", (at) => waiter(100 + at)],
    ["tryAcquire", (at) => requestOf(KEY, `try-${at}`, { enqueue: false })],
    ["revoke", (_, token) => ({ type: "revoke", key: KEY, token, reason: "because" })],
  ];

  // All kinds meet the same crowds, each with holders and waiters that no other kind uses.
  test.each(kinds.map(([title, make], kind) => [title, make, 10 * kind] as const))(
    "%s",
    async (_title, make, first) => {
      const works: number[] = [];
      for (const { ledger, tokens } of crowds) {
        const commands = several((at) => make(first + at, tokens[first + at] as number));
        works.push(await leastWorkOf(ledger, commands));
      }
      const [few, many] = works as [number, number];
      expect(few).toBeGreaterThan(3);
      expect(many).toBe(few);
    },
  );
});

describe("accumulated work is done in slices", () => {
  let listener: Redis;
  beforeAll(() => {
    listener = new Redis(server.port);
  });
  afterAll(() => listener?.disconnect());

  /** All waiters belong to one client, which is subscribed. */
  const listening = (number: number): Partial<Acquire> & { owner: string } => ({
    owner: `owner-${number}`,
    client: "ada",
  });
  const readerOfAda = (number: number): Acquire => ({ ...reader(number), ...listening(number) });

  async function waited(count: number, first: Partial<Acquire>): Promise<LedgerScript> {
    const ledger = openLedger();
    await listener.subscribe(`${ledger.channels}ada`);
    await ledger.do(requestOf(KEY, "first", { ...EXCLUSIVE, ...first }));
    await ledger.crowd(count, readerOfAda);
    return ledger;
  }

  async function worksOf(of: (count: number) => Promise<number>): Promise<void> {
    const [few, many] = [await of(FEW), await of(MANY)];
    expect(few).toBeGreaterThan(64);
    expect(many).toBeGreaterThanOrEqual(0.9 * few);
    // The digits of the sum of holders are no work, but a sample of names may be.
    expect(many).toBeLessThanOrEqual(1.1 * few + 200);
  }

  test("readers behind a writer that releases", async () => {
    await worksOf(async (count) => {
      const ledger = await waited(count, {});
      const work = await workOf(ledger, [releaseOf("first")]);
      await client.set("work", 0);
      const reply = await ledger.do({ type: "heartbeat", key: KEY, client: "ada" });
      expect(reply.more).toBe(true);
      expect(reply.grants).toHaveLength(64);
      expect(reply.waiting).toBe(count - 2 * 65);
      return work;
    });
  });

  test("waiters of a once that is done", async () => {
    await worksOf(async (count) => {
      const ledger = await waited(count, {});
      const keep = { ttlUs: 1e9, meta: "{}" };
      return workOf(ledger, [{ ...releaseOf("first"), keep }]);
    });
  });

  test("holders that expired", async () => {
    await worksOf(async (count) => {
      const ledger = openLedger();
      const ttlUs = 30_000_000;
      await ledger.crowd(count, (at) => requestOf(KEY, `reader-${at}`, { ttlUs }));
      await ledger.do(waiter(0));
      await expire(ledger);
      const work = await workOf(ledger, [{ type: "heartbeat", key: KEY, client: "waiter-0" }]);
      let reply = await ledger.do({ type: "heartbeat", key: KEY, client: "waiter-0" });
      expect(reply).toMatchObject({ more: true, grants: [] });
      expect(reply.dueUs).toBeLessThanOrEqual(0);
      while (reply.more)
        reply = await ledger.do({ type: "heartbeat", key: KEY, client: "waiter-0" });
      expect(reply.grants).toMatchObject([{ owner: "waiter-0" }]);
      return work;
    });
  });

  test("waiters of a dead client", async () => {
    await worksOf(async (count) => {
      const ledger = openLedger();
      await ledger.do(requestOf(KEY, "first", EXCLUSIVE));
      // Their client is not subscribed: it is unresponsive as soon as the first waiter is served.
      await ledger.crowd(count, (at) => ({ ...waiter(at), client: "dan" }));
      await ledger.do(waiter(count));
      await listener.subscribe(`${ledger.channels}waiter-${count}`);
      const work = await workOf(ledger, [releaseOf("first")]);
      const heartbeat = { type: "heartbeat", key: KEY, client: `waiter-${count}` } as const;
      let reply = await ledger.do(heartbeat);
      while (reply.more) reply = await ledger.do(heartbeat);
      expect(reply.grants).toMatchObject([{ owner: `waiter-${count}` }]);
      return work;
    });
  });

  /** Expires all shared holders. */
  async function expire({ register }: LedgerScript): Promise<void> {
    const [hash, order] = [`${register}:${KEY}`, `${register}e:${KEY}`];
    const past = "1".padStart(16, "0");
    const fields = await client.hgetall(hash);
    const write = client.pipeline();
    for (const [field, text] of Object.entries(fields)) {
      if (!field.startsWith("h")) continue;
      write.hset(hash, field, text[0] + past + text.slice(17));
    }
    for (const member of await client.zrangebyscore(order, 0, "+inf")) write.zadd(order, 1, member);
    await write.exec();
  }
});

function renewOf(owner: string): Command {
  const times = { ttlUs: 700_000_000, notAfterUs: 9e15, seenToken: 0 };
  return { type: "renew", ...about(owner), ...times };
}

function releaseOf(owner: string): Extract<Command, { type: "release" }> {
  return { type: "release", ...about(owner), tombstoneUs: 0, keep: null };
}
