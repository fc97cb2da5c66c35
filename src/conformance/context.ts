import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "../holdfast.js";
import type { AcquireOptions } from "../options.js";
import type { Store, Traits } from "../store.js";
import { ChildClient } from "./child-client.js";
import type { Faults, Harness } from "./harness.js";
import { PATIENCE_MS, until, within } from "./patience.js";
import { warmUp } from "./warm-up.js";

const LEAST_TTL_MS = 800;
const RENEWED_TTL_MS = 4_000;
const LONG_TTL_MS = 30_000;

/** Requests of those who wait for a lock have arrived by then, even on a busy machine. */
const ARRIVAL_MS = 2_000;

/** Stores ask the more often the shorter it is: so long, that only a message can be prompt. */
const LONG_SILENCE_MS = 60_000;

/** Leases of three lengths. */
export interface Ttl {
  /** To be waited for: it expires soon. Nothing may rely on it being renewed in time. */
  readonly shortMs: number;
  /** Short, but a busy machine still renews it. */
  readonly renewedMs: number;
  /** Does not expire, and is not even renewed, while a case runs. */
  readonly longMs: number;
}

/** What one run of one case works with. Everything that it opens ends with it. */
export class Context {
  readonly traits: Traits;
  readonly ttl: Ttl;
  readonly #harness: Harness;
  readonly #namespace = `c${randomBytes(6).toString("hex")}`;
  readonly #opened: Holdfast[] = [];
  readonly #children: ChildClient[] = [];

  constructor(harness: Harness) {
    this.#harness = harness;
    this.traits = harness.traits;
    const shortMs = harness.ttlMs ?? Math.max(LEAST_TTL_MS, harness.traits.minTtlMs);
    const renewedMs = Math.max(RENEWED_TTL_MS, shortMs);
    this.ttl = { shortMs, renewedMs, longMs: LONG_TTL_MS };
  }

  /** A client of its own; leases and patience are long unless something else is said. */
  async open(defaults: AcquireOptions = {}): Promise<Holdfast> {
    return this.bind(await this.openStore(), defaults);
  }

  /** A client that the store is known to reach: only such a one has a place that nobody takes. */
  async openKnown(defaults: AcquireOptions = {}): Promise<Holdfast> {
    const locks = await this.open(defaults);
    await warmUp(locks);
    return locks;
  }

  /** A bare store. Whoever does not bind it closes it. */
  async openStore(beside = ""): Promise<Store> {
    const store = await this.#harness.open(this.#namespace + beside);
    assert.deepEqual(store.traits, this.traits, "the harness says what the store says of itself");
    return store;
  }

  bind(store: Store, defaults: AcquireOptions = {}): Holdfast {
    const patient = { ttlMs: this.ttl.longMs, storeTimeoutMs: LONG_SILENCE_MS };
    const locks = new Holdfast(store, { ...patient, ...defaults });
    this.#opened.push(locks);
    return locks;
  }

  /** A client whose connection can be disturbed. */
  async openFaulty(
    defaults: AcquireOptions = {},
  ): Promise<{ readonly locks: Holdfast; readonly faults: Faults }> {
    const faulty = await this.#harness.faults?.open(this.#namespace);
    assert.ok(faulty, "the harness makes no faults");
    const locks = this.bind(faulty.store, defaults);
    return { locks, faults: faulty as unknown as Faults };
  }

  /** A client in another process. */
  async child(): Promise<ChildClient> {
    const child = await ChildClient.start(this.#harness, this.#namespace);
    this.#children.push(child);
    return child;
  }

  async children(count: number): Promise<ChildClient[]> {
    return Promise.all(Array.from({ length: count }, () => this.child()));
  }

  async wipe(): Promise<void> {
    await this.#harness.wipe?.(this.#namespace);
  }

  async leftovers(): Promise<readonly string[]> {
    return (await this.#harness.leftovers?.(this.#namespace)) ?? [];
  }

  /** Resolves when so many wait for a name; those who take turns count as one. */
  async untilWaiting(
    locks: Holdfast,
    name: string,
    count: number,
    boundMs?: number,
  ): Promise<void> {
    const isSeen = async () => (await locks.inspect(name)).waiters.length === count;
    // A store without an order may show no queue: then the request is given the time to arrive.
    const endMs = performance.now() + ARRIVAL_MS;
    while (!this.traits.fifo && performance.now() < endMs) {
      if (await isSeen()) return;
      await sleep(5);
    }
    if (!this.traits.fifo) return;
    await until(`${count} wait for "${name}"`, isSeen, boundMs);
  }

  /** Resolves when nobody holds a name or waits for it. */
  async untilFree(locks: Holdfast, name: string, boundMs?: number): Promise<void> {
    const isFree = async () => {
      const lease = await locks.mutex(name).tryAcquire();
      return lease?.release();
    };
    await until(`"${name}" is free`, isFree, boundMs);
  }

  /** Ends everything, however the case ended. */
  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.isRunning && child.kill()));
    const closed = Promise.all(this.#opened.map((locks) => locks.close()));
    await within(PATIENCE_MS, "all clients close", closed);
  }
}
