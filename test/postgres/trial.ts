import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import { Holdfast } from "../../src/api/holdfast.js";
import type { Lease } from "../../src/lease/lease.js";
import type { AcquireOptions } from "../../src/options/options.js";
import { openPostgresStore } from "../../src/stores/postgres/index.js";
import { parseStoreUrl } from "../../src/stores/store-url.js";
import { StoreTrial, untilWaiting } from "../stores/trial.js";

/** The URL of the servers at these ports. */
export function urlOf(...ports: readonly number[]): string {
  const hosts = ports.map((port) => `127.0.0.1:${port}`);
  return `postgres://postgres@${hosts.join(",")}/postgres`;
}

/**
 * Checks one lock in its own namespace: under all faults no two leases are trusted at once, and
 * tokens rise.
 */
export class Trial extends StoreTrial {
  readonly namespace: string = `trial-${randomUUID()}`;
  readonly name = "m";
  readonly #leases = new Set<Lease>();
  #last = 0n;

  /** Opens locks at a URL. */
  async open(url: string): Promise<Holdfast> {
    const parsed = parseStoreUrl(url);
    parsed.searchParams.set("namespace", this.namespace);
    return this.add(new Holdfast(await openPostgresStore(parsed)));
  }

  /** Acquires, and checks that no other lease is trusted at that moment. */
  async acquire(locks: Holdfast, options: AcquireOptions = {}): Promise<Lease> {
    const usual = { fairness: "strict", ttlMs: 10_000, storeTimeoutMs: 20_000 } as const;
    const lease = await locks.mutex(this.name).acquire({ ...usual, ...options });
    const others = [...this.#leases].filter(({ state }) => state === "held");
    expect(others.map(({ token }) => token)).toEqual([]);
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
  waiting(locks: Holdfast, count: number): Promise<void> {
    return untilWaiting(locks, this.name, count);
  }

  /** A holder and a waiter, and then the lock goes from one to the other. */
  async handOff(from: Holdfast, to: Holdfast): Promise<void> {
    const lease = await this.acquire(from);
    const waiting = this.acquire(to);
    await this.waiting(from, 1);
    expect(await lease.release()).toBe(true);
    expect(await (await waiting).release()).toBe(true);
  }
}

/** All kinds of calls of a client. */
export async function useAll(trial: Trial, a: Holdfast, b: Holdfast): Promise<void> {
  const lease = await trial.acquire(a);
  const waiting = trial.acquire(b);
  await trial.waiting(a, 1);
  await lease.renew();
  await lease.release();
  const next = await waiting;
  const lost = new Promise((resolve) => next.signal.addEventListener("abort", resolve));
  expect(await a.revoke(trial.name, { token: next.token, reason: "test" })).toBe(true);
  await lost;
  const read = await a.readWrite("rw").read.acquire({ ttlMs: 10_000 });
  await b.semaphore("s", 3).run(async () => {}, { weight: 2, ttlMs: 10_000 });
  expect((await b.once("o", async () => 1, { keepMs: 500, ttlMs: 10_000 })).ran).toBe(true);
  const names = [];
  for await (const { name } of a.list()) names.push(name);
  expect(names).toContain("rw");
  expect(await read.release()).toBe(true);
}
