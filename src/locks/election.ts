import type { Meta } from "../contract/store.js";
import { aboutLock, StoreError } from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { LeaseClient } from "../lease/lease-client.js";
import { knownOptions } from "../options/known-options.js";
import { type AcquireOptions, checkDuration } from "../options/options.js";
import { withJson } from "../rules/json.js";
import { checkBody, type StoreLock } from "./lock.js";
import { runInScope } from "./run-scopes.js";
import { tracedRun } from "./traced-run.js";

const RETRY_MS = 1_000;

/** The leader, when the store was last asked. */
export interface Leader {
  /** The fencing token of its lease, which rises with every change of leader. */
  readonly token: bigint;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Meta;
  /** How long it had led when the store was asked. */
  readonly heldMs: number;
}

/** The options of `observe`. */
export interface ObserveOptions {
  /** Ends the loop. */
  readonly signal?: AbortSignal | undefined;
  /** How often to ask the store. Default 1 000. */
  readonly everyMs?: number | undefined;
}

/** One leader among all candidates, first come, first served. */
export interface Election {
  /** The given name. An election and a lock of the same name are independent. */
  readonly name: string;
  /**
   * Waits to be elected. Whoever holds the lease is the leader; release it to resign.
   *
   * @example
   * const lease = await locks.election("indexer").campaign({ signal: stop.signal });
   * try {
   *   await indexBatch(lease.token);
   * } finally {
   *   await lease.release();
   * }
   */
  campaign(options?: AcquireOptions): Promise<Lease>;
  /**
   * Waits to be elected, runs `body` as the leader, and then resigns and returns its value or
   * throws its error. If the lease was lost, or its signal aborted early because of `graceMs`, this
   * waits for `body` to end, so that calls never overlap, and campaigns again.
   *
   * @example
   * await locks.election("indexer").lead(
   *   async (lease) => {
   *     while (!lease.signal.aborted && !stop.signal.aborted) await indexBatch(lease.token);
   *   },
   *   { signal: stop.signal },
   * );
   */
  lead<T>(body: (lease: Lease) => T | Promise<T>, options?: AcquireOptions): Promise<T>;
  /** The current leader; null if there is none. */
  leader(): Promise<Leader | null>;
  /**
   * Yields the leader, or null, on every change. Never yields a leader with a lower token.
   *
   * @example
   * const election = locks.election("indexer");
   * for await (const leader of election.observe({ signal: stop.signal })) {
   *   console.log(leader ? `led by ${leader.meta.host}` : "no leader");
   * }
   */
  observe(options?: ObserveOptions): AsyncGenerator<Leader | null, void>;
}

/** An election based on a lock: its holder is the leader. */
export class StoreElection implements Election {
  readonly name: string;
  readonly #client: LeaseClient;
  readonly #seat: StoreLock;

  constructor(client: LeaseClient, seat: StoreLock) {
    this.name = seat.name;
    this.#client = client;
    this.#seat = seat;
  }

  campaign(options?: AcquireOptions): Promise<Lease> {
    return this.#seat.acquire(options);
  }

  lead<T>(body: (lease: Lease) => T | Promise<T>, options?: AcquireOptions): Promise<T> {
    const { target } = this.#seat;
    const { store } = this.#client;
    return tracedRun(
      store,
      () => target,
      body,
      (traced) => this.#lead(traced, options),
    );
  }

  async #lead<T>(
    body: (lease: Lease) => T | Promise<T>,
    options: AcquireOptions | undefined,
  ): Promise<T> {
    aboutLock(this.name, this.#client.store.name, () => checkBody(body, "lead("));
    for (let isFirst = true; ; isFirst = false) {
      const lease = await (isFirst ? this.#seat.acquire(options) : this.#standAgain(options));
      try {
        const value = await runInScope(this.#client, this.#seat.target, lease, body);
        const isEnding = isToldToEnd(lease);
        if ((await lease.release()) && !isEnding) return value;
      } catch (error) {
        const wasLost = lease.state === "lost" || isToldToEnd(lease);
        await lease.release();
        if (!wasLost) throw error;
      }
      options?.signal?.throwIfAborted();
    }
  }

  /** Campaigns again after a term, and keeps trying while the store cannot be reached. */
  async #standAgain(options: AcquireOptions | undefined): Promise<Lease> {
    for (;;) {
      try {
        return await this.#seat.acquire(options);
      } catch (error) {
        ignoreTransient(error);
        await this.#client.pause(RETRY_MS, options?.signal);
      }
    }
  }

  async leader(): Promise<Leader | null> {
    const { store } = this.#client;
    const { holders } = await this.#client.look(() => store.inspect("election", this.name));
    const [holder] = holders;
    if (!holder) return null;
    const { token, meta, heldMs } = holder;
    return withJson({ token, meta, heldMs });
  }

  async *observe(options?: ObserveOptions): AsyncGenerator<Leader | null, void> {
    const { signal, everyMs = 1_000 } = knownOptions(options, ["signal", "everyMs"]);
    checkDuration("everyMs", everyMs, 1);
    let highest = -1n;
    let told: bigint | null | undefined;
    while (!signal?.aborted) {
      const leader = await this.leader().catch(ignoreTransient);
      if (leader !== undefined && (leader?.token ?? highest) >= highest) {
        const token = leader?.token ?? null;
        if (token !== told) yield leader;
        told = token;
        highest = token ?? highest;
      }
      await this.#client.pause(everyMs, signal);
    }
  }
}

/** Whether the grace period has begun, so that `body` ended because of the signal. */
function isToldToEnd(lease: Lease): boolean {
  return lease.state === "held" && lease.signal.aborted;
}

/** Ignores a retryable `StoreError`, which says nothing about the leader. Throws other errors. */
function ignoreTransient(error: unknown): undefined {
  if (error instanceof StoreError && error.retryable) return undefined;
  throw error;
}
