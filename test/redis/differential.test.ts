/**
 * The ledger is the specification. The same random commands go through the script in Redis and, at
 * the times of its replies, through the ledger. Every reply and every push must be the same.
 */

import { isDeepStrictEqual } from "node:util";
import { Redis } from "ioredis";
import { afterAll, describe, expect, test } from "vitest";
import type { Acquire, Command, Push, Reply } from "../../src/rules/ledger-command.js";
import { Upkeep } from "../../src/rules/upkeep.js";
import { MemoryLedger } from "../../src/stores/memory/memory-ledger.js";
import { decodePush, verbOf } from "../../src/stores/redis/codec.js";
import { PROVE, TELL_RUN } from "../../src/stores/redis/redis-script.js";
import { SCRIPTS, type Verb } from "../../src/stores/redis/script.generated.js";
import {
  CommandDrawer,
  DEAF,
  KINDS,
  LISTENING,
  NAMES,
  OWNERS,
  ownerOf,
} from "../fixtures/command-drawer.js";
import { isFull, isQuick } from "../fixtures/depth.js";
import { changedScripts, LedgerScript } from "../fixtures/ledger-script.js";
import { SEED } from "../fixtures/seed.js";
import { makeClocks, type ShiftedClock } from "../servers/clock-shift.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

const COMMANDS = isFull ? 200_000 : isQuick ? 8_000 : 24_000;
/** A busy machine answers a command within this time. */
const COMMAND_MS = 20;
const REGISTER = "{hf:differential}";
const CHANNELS = `${REGISTER}@`;
/** How long a call takes on an idle machine. */
const CALL_US = 300;
const GONE = ["gone, missing", "gone, replaced", "gone, revoked"];
const REFUSED = ["refused, terms", "refused, seen"];
/** None, tell the run id, write in any case. The flag of a Cluster changes what a push finds. */
const FLAGS = [0, 0, TELL_RUN, PROVE];
/** The script's time when the clock is far back: its numbers are shorter then. */
const EPOCH_MS = 1_000;

const clocks = makeClocks();
afterAll(() => clocks?.end());

type Scripts = Readonly<Record<Verb, string>>;

/** The scripts with another limit of work per call. */
function scriptsWith(slice: number): Scripts {
  return changedScripts((script) => {
    const sliced = script.replace(/(?<=^local SLICE = )\d+$/m, `${slice}`);
    expect(sliced).toContain(`local SLICE = ${slice}\n`);
    return sliced;
  });
}

/** A server with the script, whose clock can be shifted, and the pushes that clients hear. */
class Subject implements AsyncDisposable {
  readonly client: Redis;
  readonly heard: Push[] = [];
  readonly #server: RedisServer;
  readonly #clock: ShiftedClock | undefined;
  readonly #subscriber: Redis;
  readonly #ledger: LedgerScript;

  private constructor(server: RedisServer, clock: ShiftedClock | undefined, scripts: Scripts) {
    this.#server = server;
    this.#clock = clock;
    this.client = new Redis(server.port);
    this.#subscriber = new Redis(server.port);
    this.#ledger = new LedgerScript(this.client, REGISTER, scripts);
  }

  static async start(name: string, scripts: Scripts = SCRIPTS): Promise<Subject> {
    const clock = clocks?.clock(name);
    const server = await startRedis({ env: clock?.env ?? {} });
    const subject = new Subject(server, clock, scripts);
    subject.#subscriber.on("message", (channel: string, message: string) => {
      subject.heard.push(decodePush(channel.slice(CHANNELS.length), message));
    });
    await subject.#subscriber.subscribe(...LISTENING.map((client) => CHANNELS + client));
    return subject;
  }

  execute(commands: readonly Command[], flags = 0): Promise<{ nowUs: number; replies: Reply[] }> {
    return this.#ledger.execute(commands, flags);
  }

  async shiftClock(byMs: number): Promise<void> {
    await this.#clock?.shift(byMs, this.#server);
  }

  /** Resolves when all earlier messages have arrived. */
  async settlePushes(): Promise<void> {
    const { heard } = this;
    const isEnd = ({ key }: Push): boolean => key === "end";
    await this.client.publish(CHANNELS + LISTENING[0], 'm["end","","0",""]');
    await waitUntil(() => heard.some(isEnd), { what: "the last message" });
    heard.splice(heard.findIndex(isEnd), 1);
  }

  async expectKeysToExpire(): Promise<void> {
    for (const key of await this.client.keys(`${REGISTER}*`)) {
      if (key === REGISTER) continue;
      expect({ key, ttl: await this.client.pttl(key) }).not.toEqual({ key, ttl: -1 });
    }
  }

  /** Checks that in time nothing is left but the last token. */
  async expectNothingLeft(): Promise<void> {
    const keys = (): Promise<string[]> => this.client.keys(`${REGISTER}*`);
    await waitUntil(async () => (await keys()).length === 1, { what: "all keys expire" });
    expect(await keys()).toEqual([REGISTER]);
    // Later calls remove names that were never released.
    const names = async (): Promise<string[]> => {
      await Promise.all(Array.from({ length: 50 }, () => this.execute([])));
      return this.client.hkeys(REGISTER);
    };
    await waitUntil(async () => (await names()).length === 1, { what: "no name is left" });
    expect(await names()).toEqual([""]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    this.#subscriber.disconnect();
    await this.#server.close();
  }
}

/** Drops expired state, which an earlier time would make valid again, and sets the clock. */
async function setClock(
  subject: Subject,
  ledger: MemoryLedger,
  draw: CommandDrawer,
): Promise<void> {
  const looks = NAMES.map((name) => ({ type: "inspect", key: `l:${name}` }) as const);
  const { nowUs } = await subject.execute(looks);
  for (const look of looks) ledger.execute(look, { us: nowUs, wallUs: nowUs });
  // A tombstone may stay longer than necessary. Reading an expired one removes it.
  const graves = NAMES.flatMap((name) =>
    Array.from({ length: OWNERS }, (_, at) => `${REGISTER}t${ownerOf(name, at)}:l:${name}`),
  );
  const texts = await subject.client.mget(graves);
  const isOver = (text: string | null): boolean => Number(text?.slice(0, 16) ?? 0) <= nowUs;
  await subject.client.del(graves.filter((_, at) => isOver(texts[at] ?? null)));
  await subject.shiftClock(draw.pick([0, -40, -200, -1_000, 50, EPOCH_MS - Date.now()]));
  draw.nowUs = (await subject.execute([])).nowUs;
}

// In parallel, each on its own server: they mostly wait for answers.
describe.concurrent(`the script and the ledger (seed ${SEED})`, () => {
  test.for(KINDS)(
    "give the same replies and pushes: %s",
    { timeout: COMMAND_MS * COMMANDS },
    async (kind, { skip }) => {
      const isSet = kind === "a clock that jumps";
      if (isSet && !clocks) skip("there is no C compiler to shift a server's clock with");
      const upkeep = kind === "crowds, in slices" ? new Upkeep(1) : new Upkeep();
      await using subject = await Subject.start(kind, scriptsWith(upkeep.slice));
      const { client, heard } = subject;
      const pushed: Push[] = [];
      const ledger = new MemoryLedger((push) => {
        if (push.client === DEAF) return false;
        pushed.push(push);
        if (push.type === "granted") remember(push.key, push.grant.owner, push.grant.token);
        return true;
      });
      const draw = new CommandDrawer(SEED, kind);
      let behind = 0;
      const remember = (key: string, owner: string, token: number): void => {
        draw.grants.push({ key, owner, token });
      };
      draw.nowUs = (await subject.execute([])).nowUs;
      const seen = new Map<string, number>();
      const most = kind === "extreme numbers" || isSet ? COMMANDS / 2 : COMMANDS;
      for (let sent = 0, round = 0; sent < most; round += 1) {
        const size = draw.below(2) === 0 ? 1 : 1 + draw.below(8);
        const commands = draw.batch(size, verbOf);
        const startedMs = performance.now();
        const { nowUs, replies } = await subject.execute(commands, draw.pick(FLAGS));
        const slowness = Math.min(1000 * (performance.now() - startedMs), 100 * CALL_US) / CALL_US;
        draw.pace = Math.max(1, 0.95 * draw.pace + 0.05 * slowness);
        upkeep.startBatch();
        const expected = commands.map((command) => {
          const reply = ledger.execute(command, { us: nowUs, wallUs: nowUs }, upkeep);
          behind += Number(upkeep.isBehind);
          return reply;
        });
        // `expect` is slow.
        if (!isDeepStrictEqual(replies, expected)) {
          expect({ commands, replies }).toEqual({ commands, replies: expected });
        }
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
        sent += commands.length;
        if (isSet && draw.below(40) === 0) await setClock(subject, ledger, draw);
        if (draw.below(60) === 0) {
          await new Promise((end) => setTimeout(end, draw.pace * draw.below(12)));
        }
        if (round % 250 === 0) {
          await subject.settlePushes();
          expect(heard).toEqual(pushed);
          heard.length = pushed.length = 0;
          await subject.expectKeysToExpire();
          // Valid values include leases of a hundred years and tokens a year ahead.
          if (kind === "extreme numbers") {
            await client.flushall();
            ledger.forget();
            draw.grants.length = 0;
          }
        }
      }
      await subject.shiftClock(0);
      await subject.settlePushes();
      expect(heard).toEqual(pushed);
      // Valid numbers include leases of a hundred years.
      if (kind !== "extreme numbers") await subject.expectNothingLeft();
      // A run that did not reach a case would prove nothing about it.
      if (upkeep.slice === 1) expect(behind).toBeGreaterThan(COMMANDS / 240);
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
    await using subject = await Subject.start("last");
    const key = "l:last";
    const draw = new CommandDrawer(SEED, "anything");
    await subject.execute([{ ...acquireOf(draw), key }]);
    await subject.execute([{ ...acquireOf(draw), key, owner: "second", enqueue: true }]);
    for (const owner of ["second", "first"]) {
      await subject.execute([{ type: "release", key, owner, tombstoneUs: 0, keep: null }]);
    }
    expect(await subject.client.hkeys(REGISTER)).toEqual([""]);
    expect(await subject.client.keys(`${REGISTER}*`)).toEqual([REGISTER]);
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
