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

/** The leader, as the store last said. */
export interface Leader {
  /** The fencing token of its lease: it rises with every change of the leader. */
  readonly token: bigint;
  /** Its `meta`: `host`, `pid` and `label`, unless that process chose otherwise. */
  readonly meta: Meta;
  /** How long it had led when the store was asked. */
  readonly heldMs: number;
}

/** How `observe` looks, and when it ends. */
export interface ObserveOptions {
  /** Ends the loop. */
  readonly signal?: AbortSignal | undefined;
  /** How often to look. Default 1 000. */
  readonly everyMs?: number | undefined;
}

/** One leader among all candidates, first come, first served. */
export interface Election {
  /** The name that was given; elections have names apart from those of locks. */
  readonly name: string;
  /**
   * Waits to be elected. The lease is the office: release it to resign.
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
   * Leads until `body` returns or throws: then it resigns and passes the outcome on. After a loss,
   * or once the signal told `body` to wind down (`graceMs`), it waits for `body` to end, so that
   * calls never overlap, and campaigns again.
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
  /** The leader at this moment; null when there is none. */
  leader(): Promise<Leader | null>;
  /**
   * Yields the leader, or null, whenever that changes; never a leader with a lower token.
   *
   * @example
   * const election = locks.election("indexer");
   * for await (const leader of election.observe({ signal: stop.signal })) {
   *   console.log(leader ? `led by ${leader.meta.host}` : "no leader");
   * }
   */
  observe(options?: ObserveOptions): AsyncGenerator<Leader | null, void>;
}

/** An election over the lock of its office. */
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

  /** A process that was elected once stays a candidate while the store is out of reach. */
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

/** Its grace has begun: `body` ended because it was told to, not because its work was done. */
function isToldToEnd(lease: Lease): boolean {
  return lease.state === "held" && lease.signal.aborted;
}

/** A store that does not answer now says nothing about the leader. */
function ignoreTransient(error: unknown): undefined {
  if (error instanceof StoreError && error.retryable) return undefined;
  throw error;
}
