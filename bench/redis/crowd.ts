/** What a command costs the server when very many hold one name and as many wait for it. */
import { Redis } from "ioredis";
import type { Acquire, Command } from "../../src/rules/ledger-command.js";
import { LedgerScript, requestOf } from "../../test/fixtures/ledger-script.js";
import type { Contestant, Question, Sample } from "../contest.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const KEY = "l:crowd";
/** So many commands of each kind in a round. */
const TURNS = 10;
const KINDS = ["acquire", "touch", "release", "confirm", "renew", "revoke"] as const;
const BOUNDED = ["touch", "renew", "release"] as const;
const MOST_RATIO = 2;

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
      const text = `${kind} with the most holders takes at most ${MOST_RATIO} times as long`;
      return { text, value, isMet: value <= MOST_RATIO };
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
  /** Who is granted next, in the order of asking. */
  #served = 0;
  /** Who holds longest. */
  #left = 0;

  static async gather(port: number, count: number): Promise<Crowd> {
    const one = new Crowd(port, count);
    await one.#listener.psubscribe(`${one.#ledger.channels}*`);
    await one.#ledger.crowd(2 * count, () => one.#request());
    one.#served = count;
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
    const took = async (kind: (typeof KINDS)[number], command: () => Command): Promise<void> => {
      more[kind] = await this.#serverUs(command);
    };
    await took("acquire", () => this.#request());
    await took("touch", () => ({ type: "touch", key: KEY, client: `waiter-${this.#asked - 1}` }));
    await took("release", () => this.#release());
    const first = this.#served - TURNS;
    let confirmed = first;
    await took("confirm", () => this.#confirm(confirmed++));
    let renewed = first;
    await took("renew", () => this.#renew(renewed++));
    const tokens = await this.#oldestTokens();
    await took("revoke", () => this.#revoke(tokens.shift() ?? 0));
    for (let number = this.#served - TURNS; number < this.#served; number += 1) {
      await this.#ledger.do(this.#confirm(number));
    }
    await this.#serverUs(() => this.#request());
    const sum = Object.values(more).reduce((all, us) => all + us, 0);
    return { value: sum / KINDS.length, more };
  }

  async close(): Promise<void> {
    this.#client.disconnect();
    this.#listener.disconnect();
  }

  /** The time of the script, for each of so many commands that come one by one. */
  async #serverUs(command: () => Command): Promise<number> {
    const before = await scriptUs();
    for (let turn = 0; turn < TURNS; turn += 1) await this.#ledger.do(command());
    return ((await scriptUs()) - before) / TURNS;
  }

  #request(): Acquire {
    const owner = `waiter-${this.#asked++}`;
    return requestOf(KEY, owner, { limit: this.#limit });
  }

  #release(): Command {
    this.#served += 1;
    return { type: "release", key: KEY, owner: this.#leaving(), tombstoneUs: 0, keep: null };
  }

  #revoke(token: number): Command {
    this.#served += 1;
    this.#leaving();
    return { type: "revoke", key: KEY, token, reason: "crowded" };
  }

  #leaving(): string {
    return `waiter-${this.#left++}`;
  }

  #confirm(number: number): Command {
    return { type: "confirm", key: KEY, owner: `waiter-${number}` };
  }

  #renew(number: number): Command {
    const times = { ttlUs: 700_000_000, notAfterUs: 9e15, seenToken: 0 };
    return { type: "renew", key: KEY, owner: `waiter-${number}`, ...times };
  }

  async #oldestTokens(): Promise<number[]> {
    const { holders } = await this.#ledger.do({ type: "inspect", key: KEY });
    return holders.slice(0, TURNS).map(({ token }) => token);
  }
}

async function scriptUs(): Promise<number> {
  const { cmdstat_evalsha: stats = "" } = await redis.server.info("commandstats");
  return Number(/usec=(\d+)/.exec(stats)?.[1] ?? 0);
}
