/**
 * The short paths of the script for a mutex without waiters, alone and in batches, at times that
 * the test chooses. The ledger is the specification: every reply and the last token must be the
 * same. Most of the cases here are too rare for a real clock: calls in one microsecond, spans
 * across the end of a second, leases that end in that very moment.
 */

import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NO_LIMIT } from "../../src/rules/fits.js";
import type { Acquire, Command, Renew } from "../../src/rules/ledger-command.js";
import { MemoryLedger } from "../../src/stores/memory/memory-ledger.js";
import { CLUSTER, PROVE, TELL_RUN } from "../../src/stores/redis/redis-script.js";
import { isFull } from "../fixtures/depth.js";
import { withExtremeNumber } from "../fixtures/extreme-numbers.js";
import { type Garbage, seededGarbage } from "../fixtures/garbage.js";
import { changedScripts, LedgerScript } from "../fixtures/ledger-script.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const ROUNDS = isFull ? 60_000 : 3_000;
const REGISTER = "{hf:short-paths}";
const CLOCK = "clock";
const SECOND_US = 1_000_000;
/** Far ahead of the server's clock: no key expires before the time of the test. */
const START_US = (Math.floor(Date.now() / 1000) + 864_000) * SECOND_US;
const NAMES = 12;

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await startRedis();
  client = new Redis(server.port);
});
afterAll(async () => {
  client?.disconnect();
  await server?.close();
});

/** The script with a clock that the test sets. */
function openLedger(): LedgerScript {
  const scripts = changedScripts((script) => {
    const timed = script.replace("call('TIME')", `call('LRANGE', '${CLOCK}', 0, 1)`);
    expect(timed).not.toContain("'TIME'");
    return timed;
  });
  return new LedgerScript(client, REGISTER, scripts);
}

async function setClock(nowUs: number): Promise<void> {
  const parts = [Math.floor(nowUs / SECOND_US), nowUs % SECOND_US];
  await Promise.all([client.del(CLOCK), client.rpush(CLOCK, ...parts)]);
}

/** Draws commands of one client, which often have the same terms. */
class Drawer {
  readonly #chance: Garbage;
  #acquire: Acquire | undefined;
  #renew: Renew | undefined;
  nowUs = START_US;
  lastToken = 0;

  constructor(chance: Garbage) {
    this.#chance = chance;
  }

  /** Calls come in one microsecond, shortly after each other, or near the end of a second. */
  step(): void {
    const { pick, whole } = this.#chance;
    const leftUs = SECOND_US - (this.nowUs % SECOND_US);
    const nearEndUs = Math.max(0, leftUs - whole(1, 40));
    this.nowUs += pick([0, 0, 1, 1, whole(2, 50), whole(50, 3_000), nearEndUs]);
  }

  batch(): Command[] {
    const { pick, whole } = this.#chance;
    const size = pick([1, 1, 1, whole(2, 6), whole(2, 30)]);
    const first = this.#command();
    return Array.from({ length: size }, () => {
      let command = first;
      do command = this.#command();
      while (command.type !== first.type);
      if (!this.#chance.chance(0.06)) return command;
      return withExtremeNumber(command, this.nowUs, (limit) => whole(0, limit - 1));
    });
  }

  /** An acquire that is granted. */
  probe(round: number): Command {
    const terms = { ttlUs: 0, span: 1, seenToken: 0, notAfterUs: this.nowUs };
    return { ...this.#drawAcquire(), ...terms, key: `l:probe-${round}`, owner: "probe" };
  }

  #command(): Command {
    const { pick, whole, chance } = this.#chance;
    const name = whole(1, NAMES);
    const names = { key: `l:${name}`, owner: `owner-${name}-${whole(1, 2)}` };
    const kind = whole(1, 10);
    if (kind <= 5) {
      if (!this.#acquire || chance(0.4)) this.#acquire = this.#drawAcquire();
      return { ...this.#acquire, ...names };
    }
    if (kind <= 8) return { type: "release", ...names, tombstoneUs: 0, keep: null };
    if (!this.#renew || chance(0.4)) {
      const times = { ttlUs: pick([0, 1, whole(1, 90), 5_000, 30_000_000]), ...this.#limits() };
      this.#renew = { type: "renew", key: "", owner: "", ...times };
    }
    return { ...this.#renew, ...names };
  }

  #drawAcquire(): Acquire {
    const { pick, whole } = this.#chance;
    return {
      type: "acquire",
      key: "",
      owner: "",
      client: pick(["ada", "bob"]),
      mode: "exclusive",
      weight: 1,
      limit: NO_LIMIT,
      ttlUs: pick([0, 1, whole(1, 90), 5_000, 30_000_000]),
      span: pick([1, 1, 2, 32, 1_024]),
      meta: pick(["{}", '{"who": "ü"}']),
      // A waiter would take its name from the short paths.
      enqueue: false,
      offerUs: 5_000,
      heartbeatUs: 5_000,
      ...this.#limits(),
    };
  }

  #limits(): { notAfterUs: number; seenToken: number } {
    const { pick, whole } = this.#chance;
    const notAfterUs = this.nowUs + pick([-1, 0, 1, whole(1, 200), 5_000, 5_000_000]);
    const ahead = whole(-2, 40);
    const seenToken = pick([0, 0, this.lastToken, this.lastToken + ahead, this.nowUs + ahead]);
    return { notAfterUs, seenToken: Math.max(0, seenToken) };
  }
}

const garbage = seededGarbage();
/** A busy machine answers a round within this time. */
const ROUND_MS = 40;
const REPLIES = ["granted", "released", "renewed", "busy", "stale", "gone", "refused"];
const FLAGS = [0, 0, 0, CLUSTER, TELL_RUN, CLUSTER + TELL_RUN, PROVE];

test(`short paths and ledger agree (seed ${garbage.seed})`, {
  timeout: ROUND_MS * ROUNDS,
}, async () => {
  const script = openLedger();
  const ledger = new MemoryLedger(() => false);
  const draw = new Drawer(garbage);
  const seen = new Map<string, number>();
  const run = (commands: readonly Command[]) => {
    const flags = garbage.pick(FLAGS);
    return { commands, flags, answer: script.execute(commands, flags) };
  };
  const compare = async ({ commands, flags, answer }: ReturnType<typeof run>): Promise<void> => {
    const { nowUs: us, replies } = await answer;
    const expected = commands.map((command) => ledger.execute(command, { us, wallUs: us }));
    expect({ us, flags, commands, replies }).toEqual({ us, flags, commands, replies: expected });
    for (const { type } of replies) seen.set(type, (seen.get(type) ?? 0) + 1);
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    draw.step();
    // Without a pause for the answers: the server answers in this order.
    const isSet = setClock(draw.nowUs);
    const runs = [run(draw.batch())];
    // The next token tells whether both have the same last one.
    if (round % 3 === 0) runs.push(run([draw.probe(round)]));
    await isSet;
    for (const one of runs) await compare(one);
    draw.lastToken = Number(await client.hget(REGISTER, ""));
    // A token far ahead of the clock keeps acquires from the shortest path.
    if (draw.lastToken > draw.nowUs + 5_000) {
      await client.flushall();
      ledger.forget();
    }
  }
  for (const reply of REPLIES)
    expect([reply, seen.get(reply) ?? 0]).toEqual([
      reply,
      expect.toSatisfy((times: number) => times > 20),
    ]);
});
