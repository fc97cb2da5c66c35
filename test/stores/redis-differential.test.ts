/**
 * The ledger is the specification. The same random commands go through the script in Redis and, at
 * the times of its replies, through the ledger. Every reply and every push must be the same.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Request } from "../../src/rules/fits.js";
import type {
  Acquire,
  Command,
  Push,
  Release,
  Renew,
  Reply,
} from "../../src/rules/ledger-command.js";
import { Upkeep } from "../../src/rules/upkeep.js";
import { MemoryLedger } from "../../src/stores/memory/memory-ledger.js";
import { decodePush } from "../../src/stores/redis/codec.js";
import { PROVE, TELL_RUN } from "../../src/stores/redis/redis-script.js";
import { SCRIPT } from "../../src/stores/redis/script.generated.js";
import { withExtremeNumber } from "../fixtures/extreme-numbers.js";
import { LedgerScript } from "../fixtures/ledger-script.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const COMMANDS = process.env.HOLDFAST_FULL ? 200_000 : 24_000;
const LIMIT_MS = 10 * COMMANDS;
const SEED = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);
const REGISTER = "{hf:differential}";
const CHANNELS = `${REGISTER}@`;
const LISTENING = ["ada", "bob", "cyd"];
/** How long a call takes on an idle machine. */
const CALL_US = 300;
const GONE = ["gone, missing", "gone, replaced", "gone, revoked"];
const REFUSED = ["refused, terms", "refused, seen"];
const DEAF = "dan";
/** None, tell the run id, write in any case. The flag of a Cluster changes what a push finds. */
const FLAGS = [0, 0, TELL_RUN, PROVE];

/** A random generator whose seed determines the whole run. */
function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Kinds of runs: invalid numbers; a clock that jumps back and ahead; all commands; mostly mutexes
 * with waiters, which have a path of their own; and crowds at one name, whose work is done in the
 * smallest slices.
 */
const KINDS = [
  "extreme numbers",
  "a clock that jumps",
  "anything",
  "mutexes with waiters",
  "crowds, in slices",
] as const;
type Kind = (typeof KINDS)[number];

const clocks = makeClocks();
const clock = clocks?.clock("redis");
/** The script's time when the clock is far back: its numbers are shorter then. */
const EPOCH_MS = 1_000;

const NAMES = ["a", "b b", 'ü"\\', "d:{x}", "e"];
const OWNERS = 14;
const ownerOf = (name: string, at: number): string => `owner-${name.length}-${at}`;

/** Draws commands that often interfere: few names, few owners, short times. */
class Drawer {
  readonly #next: () => number;
  readonly #isCalm: boolean;
  readonly #isCrowded: boolean;
  readonly #isWild: boolean;
  /** Commands of one client often have the same terms, but for the owner. */
  #lastAcquire: Acquire | undefined;
  #lastRenew: Renew | undefined;
  /** The latest grants: most commands refer to them. */
  readonly grants: { key: string; owner: string; token: number }[] = [];
  nowUs = 0;
  /**
   * How many times as long as on an idle machine a call takes here. All times grow with it, so that
   * a busy machine meets as many cases: with the times of an idle one, most leases would be over.
   */
  pace = 1;

  constructor(seed: number, kind: Kind) {
    this.#next = chance(seed);
    this.#isCalm = kind === "mutexes with waiters";
    this.#isCrowded = kind === "crowds, in slices";
    this.#isWild = kind === "extreme numbers";
  }

  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  command(): Command {
    const command = this.#command();
    if (!this.#isWild || this.below(12) > 0) return command;
    return withExtremeNumber(command, this.nowUs, (limit) => this.below(limit));
  }

  #command(): Command {
    const name = this.pick(this.#isCrowded ? NAMES.slice(0, 1) : NAMES);
    const anyone = { key: `l:${name}`, owner: ownerOf(name, this.below(OWNERS)), token: 0 };
    const grant = this.below(3) === 0 ? anyone : (this.grants.at(-1 - this.below(8)) ?? anyone);
    const { key, owner } = grant;
    const client = this.pick([...LISTENING, ...LISTENING, DEAF]);
    const roll = this.below(100);
    if (roll < 42) return this.#acquire(anyone.key, anyone.owner, client);
    if (roll < 50) return { type: "confirm", key, owner };
    if (roll < 58) {
      if (this.#lastRenew && this.below(2) === 0) return { ...this.#lastRenew, key, owner };
      this.#lastRenew = {
        type: "renew",
        key,
        owner,
        ttlUs: this.#timeUs(),
        notAfterUs: this.#limit(),
        seenToken: this.#seen(),
        ...(this.below(4) === 0 && { heir: client }),
      };
      return this.#lastRenew;
    }
    if (roll < 80) return this.#release(key, owner);
    if (roll < 92) return { type: "touch", key, client };
    if (roll < 96) return { type: "inspect", key };
    const token = grant.token + this.below(3);
    return { type: "revoke", key, token, reason: 'stuck "deploy"' };
  }

  #acquire(key: string, owner: string, client: string): Acquire {
    if (this.#lastAcquire && this.below(2) === 0) return { ...this.#lastAcquire, key, owner };
    this.#lastAcquire = {
      type: "acquire",
      key,
      owner,
      client,
      ...this.#request(),
      ttlUs: this.#timeUs(),
      span: this.below(4) === 0 ? 1 + this.below(5) : 1,
      meta: `{"who":"${owner}", "where": "ü ${this.below(9)}"}`,
      enqueue: this.below(3) > 0,
      offerUs: this.#timeUs(),
      touchUs: this.#timeUs(),
      notAfterUs: this.#limit(),
      seenToken: this.#seen(),
    };
    return this.#lastAcquire;
  }

  #request(): Request {
    const kind = this.#isCrowded ? 4 + this.below(6) : this.below(this.#isCalm ? 5 : 10);
    const limit = Number.MAX_SAFE_INTEGER;
    if (kind < 5) return { mode: "exclusive", weight: 1, limit };
    if (kind < 7) return { mode: "shared", weight: 1, limit };
    return { mode: "shared", weight: 1 + this.below(3), limit: this.pick([2, 3, 5]) };
  }

  #release(key: string, owner: string): Release {
    const rare = this.#isCalm ? 20 : 1;
    const tombstoneUs = this.below(3 * rare) === 0 ? this.#limit() : 0;
    const meta = '{"done": "ü"}';
    const keep = this.below(4 * rare) === 0 ? { ttlUs: this.#timeUs(), meta } : null;
    return { type: "release", key, owner, tombstoneUs, keep };
  }

  #timeUs(): number {
    const leastUs = this.#isCalm ? [6_000, 20_000, 60_000] : [400, 1_500, 6_000, 20_000];
    return this.#atPace(this.pick(leastUs) + this.below(1000));
  }

  #limit(): number {
    return this.nowUs + (this.below(20) === 0 ? -500 : this.#atPace(5_000 + this.below(5000)));
  }

  #atPace(us: number): number {
    return Math.round(this.pace * us);
  }

  #seen(): number {
    const roll = this.below(300);
    if (roll === 0) return this.nowUs + 3_000;
    return roll < 150 ? 0 : (this.grants.at(-1)?.token ?? 0);
  }
}

let server: RedisServer;
let client: Redis;
let subscriber: Redis;
const heard: Push[] = [];

beforeAll(async () => {
  server = await startRedis({ env: clock?.env ?? {} });
  client = new Redis(server.port);
  subscriber = new Redis(server.port);
  subscriber.on("message", (channel: string, message: string) => {
    heard.push(decodePush(channel.slice(CHANNELS.length), message));
  });
  await subscriber.subscribe(...LISTENING.map((name) => CHANNELS + name));
});

afterAll(async () => {
  client?.disconnect();
  subscriber?.disconnect();
  await server?.close();
  clocks?.end();
});

/** SHA by script. */
const ledgers = new Map<string, LedgerScript>();

/** The script with another limit of work per call. */
function scriptWith(slice: number): string {
  const sliced = SCRIPT.replace(/(?<=^local SLICE = )\d+$/m, `${slice}`);
  expect(sliced).toContain(`local SLICE = ${slice}\n`);
  return sliced;
}

async function execute(
  commands: readonly Command[],
  script: string = SCRIPT,
  flags = 0,
): Promise<{ nowUs: number; replies: Reply[] }> {
  const ledger = ledgers.get(script) ?? new LedgerScript(client, REGISTER, script);
  ledgers.set(script, ledger);
  return ledger.execute(commands, flags);
}

/** Resolves when all earlier messages have arrived. */
async function settlePushes(): Promise<void> {
  const count = heard.length;
  const end = CHANNELS + LISTENING[0];
  const marker = 'm["end","","0",""]';
  await client.publish(end, marker);
  await expect.poll(() => heard.slice(count).some(({ key }) => key === "end")).toBe(true);
  heard.splice(0, heard.length, ...heard.filter(({ key }) => key !== "end"));
}

/** Drops expired state, which an earlier time would make valid again, and sets the clock. */
async function setClock(ledger: MemoryLedger, draw: Drawer): Promise<void> {
  const looks = NAMES.map((name) => ({ type: "inspect", key: `l:${name}` }) as const);
  const { nowUs } = await execute(looks);
  for (const look of looks) ledger.execute(look, { us: nowUs, wallUs: nowUs });
  // A tombstone may stay longer than necessary. Reading an expired one removes it.
  const graves = NAMES.flatMap((name) =>
    Array.from({ length: OWNERS }, (_, at) => `${REGISTER}t${ownerOf(name, at)}:l:${name}`),
  );
  const texts = await client.mget(graves);
  const isOver = (text: string | null): boolean => Number(text?.slice(0, 16) ?? 0) <= nowUs;
  await client.del(graves.filter((_, at) => isOver(texts[at] ?? null)));
  const shifts = [0, -40, -200, -1_000, 50, EPOCH_MS - Date.now()];
  await clock?.shift(draw.pick(shifts), server);
  draw.nowUs = (await execute([])).nowUs;
}

async function expectKeysToExpire(): Promise<void> {
  for (const key of await client.keys(`${REGISTER}*`)) {
    if (key !== REGISTER)
      expect({ key, ttl: await client.pttl(key) }).not.toEqual({ key, ttl: -1 });
  }
}

describe(`the script and the ledger (seed ${SEED})`, () => {
  test.for(KINDS)(
    "give the same replies and pushes: %s",
    { timeout: LIMIT_MS },
    async (kind, { skip }) => {
      const isSet = kind === "a clock that jumps";
      if (isSet && !clock) skip("there is no C compiler to shift a server's clock with");
      await client.flushall();
      heard.length = 0;
      const pushed: Push[] = [];
      const ledger = new MemoryLedger((push) => {
        if (push.client === DEAF) return false;
        pushed.push(push);
        if (push.type === "granted") remember(push.key, push.grant.owner, push.grant.token);
        return true;
      });
      const draw = new Drawer(SEED, kind);
      const upkeep = kind === "crowds, in slices" ? new Upkeep(1) : new Upkeep();
      const script = scriptWith(upkeep.slice);
      let behind = 0;
      const remember = (key: string, owner: string, token: number): void => {
        draw.grants.push({ key, owner, token });
      };
      draw.nowUs = (await execute([])).nowUs;
      const seen = new Map<string, number>();
      const most = kind === "extreme numbers" || isSet ? COMMANDS / 2 : COMMANDS;
      for (let sent = 0, round = 0; sent < most; round += 1) {
        const size = draw.below(2) === 0 ? 1 : 1 + draw.below(8);
        const commands = Array.from({ length: size }, () => draw.command());
        const startedMs = performance.now();
        const { nowUs, replies } = await execute(commands, script, draw.pick(FLAGS));
        const slowness = Math.min(1000 * (performance.now() - startedMs), 100 * CALL_US) / CALL_US;
        draw.pace = Math.max(1, 0.95 * draw.pace + 0.05 * slowness);
        upkeep.startBatch();
        const expected = commands.map((command) => {
          const reply = ledger.execute(command, { us: nowUs, wallUs: nowUs }, upkeep);
          behind += Number(upkeep.isBehind);
          return reply;
        });
        expect({ commands, replies }).toEqual({ commands, replies: expected });
        for (const [at, reply] of replies.entries()) {
          const command = commands[at] as Command;
          const isReasoned = reply.type === "gone" || reply.type === "refused";
          const type = isReasoned ? `${reply.type}, ${reply.reason}` : reply.type;
          seen.set(type, (seen.get(type) ?? 0) + 1);
          if (reply.type !== "granted" || command.type !== "acquire") continue;
          remember(command.key, command.owner, reply.token);
        }
        draw.grants.splice(0, draw.grants.length - 50);
        draw.nowUs = nowUs;
        sent += size;
        if (isSet && draw.below(40) === 0) await setClock(ledger, draw);
        if (draw.below(60) === 0) {
          await new Promise((end) => setTimeout(end, draw.pace * draw.below(12)));
        }
        if (round % 250 === 0) {
          await settlePushes();
          expect(heard).toEqual(pushed);
          heard.length = pushed.length = 0;
          await expectKeysToExpire();
          // Valid values include leases of a hundred years and tokens a year ahead.
          if (kind === "extreme numbers") {
            await client.flushall();
            ledger.forget();
            draw.grants.length = 0;
          }
        }
      }
      await clock?.shift(0, server);
      await settlePushes();
      expect(heard).toEqual(pushed);
      // A run that did not reach a case would prove nothing about it.
      if (upkeep.slice === 1) expect(behind).toBeGreaterThan(100);
      expect([...seen].filter(([, times]) => times > 5).map(([type]) => type)).toEqual(
        expect.arrayContaining([
          "granted",
          "queued",
          "busy",
          "marked",
          "stale",
          "renewed",
          ...(kind === "extreme numbers" ? REFUSED : isSet ? [] : GONE),
        ]),
      );
    },
  );

  test("leave nothing but the last token", async () => {
    await expect.poll(() => client.keys(`${REGISTER}*`), { timeout: 5_000 }).toEqual([REGISTER]);
    // Later calls remove names that were never released.
    await expect
      .poll(async () => {
        await Promise.all(Array.from({ length: 50 }, () => execute([])));
        return client.hkeys(REGISTER);
      })
      .toEqual([""]);
    const key = "l:last";
    const draw = new Drawer(SEED, "anything");
    await execute([{ ...acquireOf(draw), key }]);
    await execute([{ ...acquireOf(draw), key, owner: "second", enqueue: true }]);
    for (const owner of ["second", "first"]) {
      await execute([{ type: "release", key, owner, tombstoneUs: 0, keep: null }]);
    }
    expect(await client.hkeys(REGISTER)).toEqual([""]);
    expect(await client.keys(`${REGISTER}*`)).toEqual([REGISTER]);
  });
});

function acquireOf(draw: Drawer): Acquire {
  for (;;) {
    const command = draw.command();
    if (command.type === "acquire") {
      const forever = 9e15;
      return { ...command, owner: "first", ttlUs: 1e7, notAfterUs: forever, seenToken: 0 };
    }
  }
}
