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

/** The first letters of encoded commands, see the codec of the store. */
const LETTERS = { acquire: "XxEeSs", confirm: "c", renew: "nm", release: "rd" } as const;

export type Operation = keyof typeof LETTERS;

/** Matches calls that contain a command of this kind. */
export function carries(operation: Operation): (request: ProxiedRequest) => boolean {
  return ({ command, args }) => {
    if (command !== "EVALSHA" && command !== "EVAL") return false;
    // The names of the locks, their commands, and perhaps flags.
    const rest = args.slice(2 + Number(args[1]));
    const count = Math.floor(rest.length / 2);
    const commands = rest.slice(count, 2 * count);
    return commands.some(([letter = ""]) => LETTERS[operation].includes(letter));
  };
}

/**
 * Checks one lock in its own namespace: under all faults no two leases are trusted at once, and
 * tokens rise. At the end the lock is free, and no keys are left.
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

  /** Opens locks with an ioredis client at this port. */
  ioredis(port: number, options?: StoreOptions): Holdfast {
    const client = new Redis({ port, retryStrategy: () => 20 });
    client.on("error", () => {});
    return this.by(client, () => client.disconnect(), options);
  }

  /** Opens locks with a node-redis client at this port. */
  async nodeRedis(port: number, options?: StoreOptions): Promise<Holdfast> {
    const socket = { host: "127.0.0.1", port, reconnectStrategy: 20 };
    const client = createClient({ socket });
    client.on("error", () => {});
    await client.connect();
    return this.by(client as unknown as Client, () => client.destroy(), options);
  }

  /** Opens locks with a client that is closed with the trial. */
  by(client: Client, close: () => unknown, options: StoreOptions = {}): Holdfast {
    const locks = new Holdfast(redisStore({ client, namespace: this.namespace, ...options }));
    this.closeLater(close);
    this.closeLater(() => locks.close());
    return locks;
  }

  closeLater(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Sets the last token an hour ahead, like after a wrong clock. */
  async raiseTokens(master: RedisServer): Promise<void> {
    const aheadUs = (Date.now() + 3_600_000) * 1_000;
    await master.ask("HSET", `{hf:${this.namespace}}`, "", aheadUs);
  }

  /** From now on the server may have lost its data: leases may overlap, but tokens must rise. */
  expectOverlap(): void {
    this.#forgets = true;
  }

  /** Acquires, and checks that no other lease is trusted at that moment. */
  async acquire(locks: Holdfast, options: AcquireOptions = {}): Promise<Lease> {
    // A tombstone lives as long as a lease; a short ttl makes it expire soon.
    const usual = { fairness: "strict", ttlMs: 2_000 } as const;
    const lease = await locks.mutex(this.name).acquire({ ...usual, ...options });
    const others = [...this.#leases].filter(({ state }) => state === "held");
    if (!this.#forgets) expect(others.map(({ token }) => token)).toEqual([]);
    expect(lease.token).toBeGreaterThan(this.#last);
    this.#last = lease.token;
    this.#leases.add(lease);
    return lease;
  }

  /** Acquires and releases. */
  async turn(locks: Holdfast, options?: AcquireOptions): Promise<void> {
    expect(await (await this.acquire(locks, options)).release()).toBe(true);
  }

  /** Resolves when there are that many waiters. */
  async waiting(locks: Holdfast, count: number): Promise<void> {
    await waitUntil(async () => (await locks.inspect(this.name)).waiters.length === count, {
      what: `${count} waiters`,
    });
  }

  /**
   * Checks that `locks`, a client without faults, acquires within `withinMs`. Then releases, and
   * checks that no keys are left.
   */
  async end(locks: Holdfast, withinMs: number): Promise<void> {
    const last = await this.acquire(locks, { ttlMs: 30_000, waitMs: withinMs });
    expect(await last.release()).toBe(true);
    await this.close();
    await waitUntil(async () => (await this.#leftovers()).length === 0, {
      what: `no keys are left in ${this.namespace}`,
      timeoutMs: 10_000,
    }).catch(async () => expect(await this.#leftovers()).toEqual([]));
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  /** All keys except the register, whose unreleased names another test checks. */
  async #leftovers(): Promise<string[]> {
    const masters = this.#masters.filter(({ running }) => running);
    const pattern = `{hf:${this.namespace}[:}]*`;
    const found = await Promise.all(masters.map((master) => master.ask("KEYS", pattern)));
    return (found as string[][]).flat().filter((key) => !key.endsWith("}"));
  }
}
