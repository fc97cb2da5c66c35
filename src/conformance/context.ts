import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "../api/holdfast.js";
import type { Store, Traits } from "../contract/store.js";
import type { AcquireOptions } from "../options/options.js";
import { ChildClient } from "./child-client.js";
import type { Faults, Harness } from "./harness.js";
import { PATIENCE_MS, until, within } from "./patience.js";
import { warmUp } from "./warm-up.js";

const MIN_TTL_MS = 800;
const RENEWED_TTL_MS = 4_000;
const LONG_TTL_MS = 30_000;

/** The request of a waiter reaches the store within this time, even on a busy machine. */
const ARRIVAL_MS = 2_000;

/** So long that no store polls within PROMPT_MS: a prompt grant comes from a message. */
const LONG_SILENCE_MS = 60_000;

/** Three lengths of leases. */
export interface Ttl {
  /** For cases that wait for the expiry: a busy machine may see it before the next statement. */
  readonly shortMs: number;
  /** Short, but even a busy machine renews it in time. */
  readonly renewedMs: number;
  /** Neither expires nor is renewed while a case runs. */
  readonly longMs: number;
}

/** The clients and child processes of one run of one case. All of them end with the run. */
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
    const shortMs = harness.ttlMs ?? Math.max(MIN_TTL_MS, harness.traits.minTtlMs);
    const renewedMs = Math.max(RENEWED_TTL_MS, shortMs);
    this.ttl = { shortMs, renewedMs, longMs: LONG_TTL_MS };
  }

  /** Opens a client. Leases and storeTimeoutMs are long by default. */
  async open(defaults: AcquireOptions = {}): Promise<Holdfast> {
    return this.bind(await this.openStore(), defaults);
  }

  /** Opens a client that the store's messages reach: a store may pass over any other waiter. */
  async openKnown(defaults: AcquireOptions = {}): Promise<Holdfast> {
    const locks = await this.open(defaults);
    await warmUp(locks);
    return locks;
  }

  /** Opens a store without a client. A case that does not `bind` the store closes it. */
  async openStore(beside = ""): Promise<Store> {
    const store = await this.#harness.open(this.#namespace + beside);
    assert.deepEqual(store.traits, this.traits, "the traits of the harness are those of the store");
    return store;
  }

  bind(store: Store, defaults: AcquireOptions = {}): Holdfast {
    const patient = { ttlMs: this.ttl.longMs, storeTimeoutMs: LONG_SILENCE_MS };
    const locks = new Holdfast(store, { ...patient, ...defaults });
    this.#opened.push(locks);
    return locks;
  }

  /** Opens a client whose connection can fail. */
  async openFaulty(
    defaults: AcquireOptions = {},
  ): Promise<{ readonly locks: Holdfast; readonly faults: Faults }> {
    const faulty = await this.#harness.faults?.open(this.#namespace);
    assert.ok(faulty, "the harness makes no faults");
    const locks = this.bind(faulty.store, defaults);
    return { locks, faults: faulty as unknown as Faults };
  }

  /** Starts a client in a child process. */
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

  /** Resolves when a name has that many waiters. Turns of one client count as one waiter. */
  async untilWaiting(
    locks: Holdfast,
    name: string,
    count: number,
    boundMs?: number,
  ): Promise<void> {
    const isSeen = async () => (await locks.inspect(name)).waiters.length === count;
    // A store without an order may show no waiters, so the request gets time to arrive.
    const endMs = performance.now() + ARRIVAL_MS;
    while (!this.traits.fifo && performance.now() < endMs) {
      if (await isSeen()) return;
      await sleep(5);
    }
    if (!this.traits.fifo) return;
    await until(`"${name}" has ${count} waiters`, isSeen, boundMs);
  }

  /** Resolves when a name has no holder and no waiter. */
  async untilFree(locks: Holdfast, name: string, boundMs?: number): Promise<void> {
    const isFree = async () => {
      const lease = await locks.mutex(name).tryAcquire();
      return lease?.release();
    };
    await until(`"${name}" is free`, isFree, boundMs);
  }

  /** Ends all child processes and clients. */
  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.isRunning && child.kill()));
    const closed = Promise.all(this.#opened.map((locks) => locks.close()));
    await within(PATIENCE_MS, "all clients close", closed);
  }
}
