import { Redis } from "ioredis";
import { createClient } from "redis";
import { expect } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import { StoreError } from "../../src/errors/index.js";
import type { Lease } from "../../src/lease/lease.js";
import type { AcquireOptions } from "../../src/options/options.js";
import { type RedisStoreOptions, redisStore } from "../../src/stores/redis/index.js";
import { SCRIPTS } from "../../src/stores/redis/script.generated.js";
import { sha1 } from "../../src/stores/redis-client/client.js";
import type { ProxiedRequest } from "../faults/framing.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import type { RedisServer } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { ioredis, type Library, nodeRedis, type Opened, RECONNECT_MS } from "./clients.js";

export type StoreOptions = Partial<Omit<RedisStoreOptions, "client" | "namespace">>;

/** Longer than any wait without a bug, also on a busy machine. */
const PATIENCE_MS = 60_000;
/** No trial has a longer lease. */
const MAX_TTL_MS = 60_000;
/** The reply to PTTL for a key that stays. */
const NO_EXPIRY = -1;

const VERBS = { acquire: "acquire", confirm: "renew", renew: "renew", release: "release" } as const;

export type Operation = keyof typeof VERBS;

/** Matches calls that contain a command of this kind. */
export function carries(operation: Operation): (request: ProxiedRequest) => boolean {
  return ({ command, args }) => {
    if (command !== "EVALSHA" && command !== "EVAL") return false;
    // The names of the locks, their commands, and perhaps flags.
    const rest = args.slice(2 + Number(args[1]));
    const count = Math.floor(rest.length / 2);
    const commands = rest.slice(count, 2 * count);
    const script = SCRIPTS[VERBS[operation]];
    if (args[0] !== (command === "EVAL" ? script : sha1(script)) || count === 0) return false;
    // A confirm is a renewal with 16 dashes for its ttl.
    const isConfirm = (text: string): boolean => text.slice(32, 48) === "-".repeat(16);
    if (operation === "confirm") return commands.some(isConfirm);
    return operation !== "renew" || !commands.every(isConfirm);
  };
}

let trials = 0;

/**
 * Checks one lock in its own namespace: under all faults no two leases are trusted at once, and
 * tokens rise. At the end the lock is free, and no keys stay.
 */
export class Trial implements AsyncDisposable {
  readonly namespace: string = `trial-${++trials}`;
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
    return this.by(ioredis(new Redis({ port, retryStrategy: () => RECONNECT_MS })), options);
  }

  /** Opens locks with a client of this library at this port. */
  async open(library: Library, port: number, options?: StoreOptions): Promise<Holdfast> {
    if (library === "ioredis") return this.ioredis(port, options);
    const socket = { host: "127.0.0.1", port, reconnectStrategy: RECONNECT_MS };
    return this.by(await nodeRedis(createClient({ socket })), options);
  }

  /** Opens locks with a client that is closed with the trial. */
  by({ client, close }: Opened, options: StoreOptions = {}): Holdfast {
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
    const usual = { fairness: "strict", ttlMs: 10_000 } as const;
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
   * checks that no keys stay.
   */
  async end(locks: Holdfast, withinMs: number): Promise<void> {
    const stopwatch = new Stopwatch();
    const last = await this.acquire(locks, { ttlMs: 30_000, waitMs: PATIENCE_MS });
    stopwatch.expectLessThan(withinMs, "the lock is free");
    expect(await last.release()).toBe(true);
    await this.close();
    expect(await this.#leftovers()).toEqual([]);
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Keys that do not expire soon, except the register, whose unreleased names another test checks.
   * Tombstones and counts stay for as long as a lease could; then the server removes them.
   */
  async #leftovers(): Promise<string[]> {
    const masters = this.#masters.filter(({ running }) => running);
    const found = await Promise.all(
      masters.map(async (master) => {
        await using client = await master.client();
        // It may have become a replica of a Cluster; other servers refuse this command.
        await client.send("READONLY").catch(() => {});
        const keys = (await client.send("KEYS", `{hf:${this.namespace}[:}]*`)) as string[];
        const leftMs = await Promise.all(keys.map((key) => client.send("PTTL", key).then(Number)));
        const stays = (ms = 0): boolean => ms === NO_EXPIRY || ms > MAX_TTL_MS;
        return keys.filter((key, at) => !key.endsWith("}") && stays(leftMs[at]));
      }),
    );
    return found.flat();
  }
}

/** Checks that the call is refused because of data of another program, and names the place. */
export async function expectForeign(work: Promise<unknown>, where: string): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StoreError);
  expect(error).toMatchObject({ code: "HF_STORE", retryable: false });
  expect(String(error)).toContain("data that is not ours");
  expect(String(error)).toContain(where);
}
