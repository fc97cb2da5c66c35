/**
 * The ledger is the specification. The same random commands go through the script in Redis and, at
 * the times of its replies, through the ledger. Every reply and every push must be the same.
 */
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Acquire, Command, Push, Reply } from "../../src/rules/ledger-command.js";
import { Upkeep } from "../../src/rules/upkeep.js";
import { MemoryLedger } from "../../src/stores/memory/memory-ledger.js";
import { decodePush } from "../../src/stores/redis/codec.js";
import { PROVE, TELL_RUN } from "../../src/stores/redis/redis-script.js";
import { SCRIPT } from "../../src/stores/redis/script.generated.js";
import {
  CommandDrawer,
  DEAF,
  KINDS,
  LISTENING,
  NAMES,
  OWNERS,
  ownerOf,
} from "../fixtures/command-drawer.js";
import { LedgerScript } from "../fixtures/ledger-script.js";
import { makeClocks } from "../servers/clock-shift.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const COMMANDS = process.env.HOLDFAST_FULL ? 200_000 : 24_000;
const LIMIT_MS = 10 * COMMANDS;
const SEED = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);
const REGISTER = "{hf:differential}";
const CHANNELS = `${REGISTER}@`;
/** How long a call takes on an idle machine. */
const CALL_US = 300;
const GONE = ["gone, missing", "gone, replaced", "gone, revoked"];
const REFUSED = ["refused, terms", "refused, seen"];
/** None, tell the run id, write in any case. The flag of a Cluster changes what a push finds. */
const FLAGS = [0, 0, TELL_RUN, PROVE];

const clocks = makeClocks();
const clock = clocks?.clock("redis");
/** The script's time when the clock is far back: its numbers are shorter then. */
const EPOCH_MS = 1_000;

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
async function setClock(ledger: MemoryLedger, draw: CommandDrawer): Promise<void> {
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
      const draw = new CommandDrawer(SEED, kind);
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
    const draw = new CommandDrawer(SEED, "anything");
    await execute([{ ...acquireOf(draw), key }]);
    await execute([{ ...acquireOf(draw), key, owner: "second", enqueue: true }]);
    for (const owner of ["second", "first"]) {
      await execute([{ type: "release", key, owner, tombstoneUs: 0, keep: null }]);
    }
    expect(await client.hkeys(REGISTER)).toEqual([""]);
    expect(await client.keys(`${REGISTER}*`)).toEqual([REGISTER]);
  });
});

function acquireOf(draw: CommandDrawer): Acquire {
  for (;;) {
    const command = draw.command();
    if (command.type === "acquire") {
      const forever = 9e15;
      return { ...command, owner: "first", ttlUs: 1e7, notAfterUs: forever, seenToken: 0 };
    }
  }
}
