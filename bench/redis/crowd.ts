/** The cost of a command for the server when very many hold one name and as many wait. */
import { Redis } from "ioredis";
import type { Acquire, Command } from "../../src/rules/ledger-command.js";
import { LedgerScript, requestOf } from "../../test/fixtures/ledger-script.js";
import type { Contestant, Question, Sample } from "../contest.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const KEY = "l:crowd";
/** So many commands of each kind one after the other, and so many times in a round. */
const TURNS = 10;
const CYCLES = 20;
const KINDS = ["acquire", "heartbeat", "release", "confirm", "renew", "revoke"] as const;
const BOUNDED = ["heartbeat", "renew", "release"] as const;
const MAX_RATIO = 2;

export const crowd: Question = {
  store: "redis",
  name: "crowd",
  title: "server time of a command beside very many who hold and wait",
  about:
    "A semaphore has as many holders as are named, and as many wait for it, each of a client of " +
    "its own. Counted is the time that Redis itself spends on each command: it serves nobody " +
    "else meanwhile.",
  unit: "µs/command",
  better: "lower",
  rounds: 15,
  takesLong: true,
  async contestants(isQuick) {
    const port = await redis.start();
    const counts = isQuick ? [10, 1_000] : [10, 1_000, 50_000];
    const contestants: Contestant[] = [];
    for (const count of counts) contestants.push(await Crowd.gather(port, count));
    return contestants;
  },
  goals(_of, standings) {
    const [few, many] = [standings[0], standings.at(-1)];
    return BOUNDED.map((kind) => {
      const value = (many?.more[kind] ?? Number.NaN) / (few?.more[kind] ?? Number.NaN);
      const text = `${kind} with the most holders takes at most ${MAX_RATIO} times as long`;
      return { text, value, isMet: value <= MAX_RATIO };
    });
  },
  close: () => redis.stop(),
};

/** A semaphore that is full, with a queue as long as it has holders. */
class Crowd implements Contestant {
  readonly name: string;
  readonly role = "holdfast";
  readonly #client: Redis;
  readonly #listener: Redis;
  readonly #ledger: LedgerScript;
  readonly #limit: number;
  #asked = 0;
  /** How many were granted, in the order of asking. */
  #served = 0;
  /** The owners that hold, the oldest first. */
  readonly #holders: string[] = [];

  static async gather(port: number, count: number): Promise<Crowd> {
    const one = new Crowd(port, count);
    await one.#listener.psubscribe(`${one.#ledger.channels}*`);
    await one.#ledger.crowd(2 * count, () => one.#request());
    for (let number = 0; number < count; number += 1) one.#serve();
    return one;
  }

  private constructor(port: number, count: number) {
    const many = count.toLocaleString("en");
    this.name = `holdfast, ${many} hold, ${many} wait`;
    this.#limit = count;
    this.#client = new Redis(port);
    this.#listener = new Redis(port);
    this.#ledger = new LedgerScript(this.#client, `{hf:crowd-${count}}`);
  }

  async round(): Promise<Sample> {
    const more: Record<string, number> = {};
    for (let cycle = 0; cycle < CYCLES; cycle += 1) await this.#cycle(more);
    for (const kind of KINDS) more[kind] = (more[kind] ?? 0) / CYCLES;
    const sum = Object.values(more).reduce((all, us) => all + us, 0);
    return { value: sum / KINDS.length, more };
  }

  async close(): Promise<void> {
    this.#client.disconnect();
    this.#listener.disconnect();
  }

  /** As many are granted as leave, and as many come to wait as are granted. */
  async #cycle(sums: Record<string, number>): Promise<void> {
    const tokens: number[] = [];
    const took = async (kind: (typeof KINDS)[number], command: () => Command): Promise<void> => {
      const before = await scriptUs();
      for (let turn = 0; turn < TURNS; turn += 1) {
        const reply = await this.#ledger.do(command());
        if (kind === "renew" && reply.type === "renewed") tokens.push(reply.token);
      }
      sums[kind] = (sums[kind] ?? 0) + ((await scriptUs()) - before) / TURNS;
    };
    await took("acquire", () => this.#request());
    await took("heartbeat", () => ({
      type: "heartbeat",
      key: KEY,
      client: `waiter-${this.#asked - 1}`,
    }));
    await took("release", () => this.#release());
    const granted = this.#holders.slice(-TURNS);
    const [toConfirm, toRenew] = [[...granted], [...granted]];
    await took("confirm", () => confirmOf(toConfirm.shift() ?? ""));
    await took("renew", () => renewOf(toRenew.shift() ?? ""));
    this.#holders.splice(-TURNS);
    await took("revoke", () => this.#revoke(tokens.shift() ?? 0));
    for (const owner of this.#holders.slice(-TURNS)) await this.#ledger.do(confirmOf(owner));
    for (let turn = 0; turn < TURNS; turn += 1) await this.#ledger.do(this.#request());
  }

  #request(): Acquire {
    return requestOf(KEY, `waiter-${this.#asked++}`, { limit: this.#limit });
  }

  #release(): Command {
    const owner = this.#holders.shift() ?? "";
    this.#serve();
    return { type: "release", key: KEY, owner, tombstoneUs: 0, keep: null };
  }

  #revoke(token: number): Command {
    this.#serve();
    return { type: "revoke", key: KEY, token, reason: "crowded" };
  }

  /** The next in line holds from now on. */
  #serve(): void {
    this.#holders.push(`waiter-${this.#served++}`);
  }
}

async function scriptUs(): Promise<number> {
  const { cmdstat_evalsha: stats = "" } = await redis.server.info("commandstats");
  return Number(/usec=(\d+)/.exec(stats)?.[1] ?? 0);
}

function confirmOf(owner: string): Command {
  return { type: "confirm", key: KEY, owner };
}

function renewOf(owner: string): Command {
  const times = { ttlUs: 700_000_000, notAfterUs: 9e15, seenToken: 0 };
  return { type: "renew", key: KEY, owner, ...times };
}
