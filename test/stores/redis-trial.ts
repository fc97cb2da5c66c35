import { randomUUID } from "node:crypto";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { expect } from "vitest";
import { Holdfast } from "../../src/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import type { AcquireOptions } from "../../src/options.js";
import { type RedisStoreOptions, redisStore } from "../../src/stores/redis/index.js";
import type { ProxiedRequest } from "../faults/framing.js";
import type { RedisServer } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

export type Client = RedisStoreOptions["client"];
export type StoreOptions = Partial<Omit<RedisStoreOptions, "client" | "namespace">>;

/** The letters that commands begin with on their way, see the codec of the store. */
const LETTERS = { acquire: "XxEeSs", confirm: "c", renew: "nm", release: "rd" } as const;

export type Operation = keyof typeof LETTERS;

/** Finds the calls that carry a command of this kind. */
export function carries(operation: Operation): (request: ProxiedRequest) => boolean {
  return ({ command, args }) => {
    if (command !== "EVALSHA" && command !== "EVAL") return false;
    // The names of the locks, the commands on them, and perhaps flags.
    const rest = args.slice(2 + Number(args[1]));
    const count = Math.floor(rest.length / 2);
    const commands = rest.slice(count, 2 * count);
    return commands.some(([letter = ""]) => LETTERS[operation].includes(letter));
  };
}

/**
 * One lock under trial, in a namespace of its own: whatever strikes, no two believe at once and
 * tokens rise; at the end it can be had again, and nothing is left behind.
 */
export class Trial {
  readonly namespace: string = `trial-${randomUUID()}`;
  readonly name = "m";
  readonly #masters: readonly RedisServer[];
  readonly #leases = new Set<Lease>();
  readonly #closers: (() => unknown)[] = [];
  #last = 0n;
  #forgets = false;

  constructor(...masters: readonly RedisServer[]) {
    this.#masters = masters;
  }

  /** Locks by a client of ioredis at this port. */
  ioredis(port: number, options?: StoreOptions): Holdfast {
    const client = new Redis({ port, retryStrategy: () => 20 });
    client.on("error", () => {});
    return this.by(client, () => client.disconnect(), options);
  }

  /** Locks by a client of node-redis at this port. */
  async nodeRedis(port: number, options?: StoreOptions): Promise<Holdfast> {
    const socket = { host: "127.0.0.1", port, reconnectStrategy: 20 };
    const client = createClient({ socket });
    client.on("error", () => {});
    await client.connect();
    return this.by(client as unknown as Client, () => client.destroy(), options);
  }

  /** Locks by a client that is closed with the trial. */
  by(client: Client, close: () => unknown, options: StoreOptions = {}): Holdfast {
    const locks = new Holdfast(redisStore({ client, namespace: this.namespace, ...options }));
    this.closeLater(close);
    this.closeLater(() => locks.close());
    return locks;
  }

  closeLater(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Puts the last token an hour ahead, as a clock that was wrong for a while leaves it. */
  async raiseTokens(master: RedisServer): Promise<void> {
    const aheadUs = (Date.now() + 3_600_000) * 1_000;
    await master.ask("HSET", `{hf:${this.namespace}}`, "", aheadUs);
  }

  /** From now on the server may have forgotten who holds it: only the tokens must rise. */
  expectOverlap(): void {
    this.#forgets = true;
  }

  /** Acquires, and checks that nobody else believes at that moment. */
  async acquire(locks: Holdfast, options: AcquireOptions = {}): Promise<Lease> {
    // A tombstone stands for as long as a lease would: what is left must go soon.
    const usual = { fairness: "strict", ttlMs: 2_000 } as const;
    const lease = await locks.mutex(this.name).acquire({ ...usual, ...options });
    const others = [...this.#leases].filter(({ state }) => state === "held");
    if (!this.#forgets) expect(others.map(({ token }) => token)).toEqual([]);
    expect(lease.token).toBeGreaterThan(this.#last);
    this.#last = lease.token;
    this.#leases.add(lease);
    return lease;
  }

  /** A turn with nothing to do in it. */
  async turn(locks: Holdfast, options?: AcquireOptions): Promise<void> {
    expect(await (await this.acquire(locks, options)).release()).toBe(true);
  }

  /** Resolves when so many wait. */
  async waiting(locks: Holdfast, count: number): Promise<void> {
    await waitUntil(async () => (await locks.inspect(this.name)).waiters.length === count, {
      what: `${count} wait`,
    });
  }

  /**
   * The lock can be had within `withinMs` by `locks`, who has not been struck; then all is given
   * back, and nothing is left of it.
   */
  async end(locks: Holdfast, withinMs: number): Promise<void> {
    const last = await this.acquire(locks, { ttlMs: 30_000, waitMs: withinMs });
    expect(await last.release()).toBe(true);
    await this.close();
    await waitUntil(async () => (await this.#leftovers()).length === 0, {
      what: `nothing is left in ${this.namespace}`,
      timeoutMs: 10_000,
    }).catch(async () => expect(await this.#leftovers()).toEqual([]));
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  /** All keys but the register: what nobody released leaves that later, in its own test. */
  async #leftovers(): Promise<string[]> {
    const masters = this.#masters.filter(({ running }) => running);
    const pattern = `{hf:${this.namespace}[:}]*`;
    const found = await Promise.all(masters.map((master) => master.ask("KEYS", pattern)));
    return (found as string[][]).flat().filter((key) => !key.endsWith("}"));
  }
}
