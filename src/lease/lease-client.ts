/**
 * Acquires, resumes and releases the leases of this process. Each store has one client.
 */

import type { Busy, Claim, Grant, Store } from "../contract/store.js";
import {
  ClosedError,
  InternalError,
  InvalidOptionError,
  isFinal,
  StoreError,
} from "../errors/index.js";
import type { LockKind } from "../events/events.js";
import { callContext, events } from "../events/publish.js";
import { type Options, resolveOptions } from "../options/options.js";
import { NO_LIMIT } from "../rules/fits.js";
import { unlessAborted } from "./abort-listeners.js";
import { traced } from "./acquire-event.js";
import type { AcquireWait } from "./acquire-wait.js";
import { Closing } from "./closing.js";
import { explain } from "./explain.js";
import { decodeHandle } from "./handle.js";
import { HeldLease, type Lease, type LeaseResult, type Origin } from "./lease.js";
import { LeaseRenewer } from "./lease-renewer.js";
import { LeaseRequest } from "./lease-request.js";
import type { LocalQueue } from "./local-queue.js";
import { LocalQueues } from "./local-queues.js";
import { Releases } from "./releases.js";
import { GRACE_MS, LAST_TRY_MS, unansweredError } from "./request-limit.js";
import {
  claimFor,
  type Enclosing,
  type RequestOptions,
  STORE_TIMEOUT_MS,
  type Target,
  TRY_TIMEOUT_MS,
} from "./request-options.js";
import { Waits } from "./waits.js";

/** Stores in use: a client closes its store, so a store cannot have two clients. */
const taken = new WeakSet<Store>();

export class LeaseClient {
  readonly store: Store;
  readonly #leaseRenewer: LeaseRenewer;
  readonly #releases: Releases;
  readonly #localQueues: LocalQueues;
  readonly #waits: Waits;
  #closing: Promise<void> | undefined;

  constructor(store: Store) {
    if (taken.has(store)) {
      const rule = "must not belong to another Holdfast: make one store for each";
      throw new InvalidOptionError("store", store.name, rule);
    }
    taken.add(store);
    this.store = store;
    this.#leaseRenewer = new LeaseRenewer(store);
    this.#releases = new Releases(store, this.#leaseRenewer);
    this.#localQueues = new LocalQueues(store, this.#leaseRenewer, this.#releases);
    this.#waits = new Waits(store.runtime);
  }

  assertOpen(): void {
    if (this.#closing) throw new ClosedError({ store: this.store.name });
  }

  /**
   * Asks the store without waiting for a lock. Throws `ClosedError` if `close` cut the call off.
   */
  async look<T>(ask: () => Promise<T>): Promise<T> {
    this.assertOpen();
    try {
      return await ask();
    } catch (error) {
      this.assertOpen();
      throw await this.explained(error);
    }
  }

  /**
   * Adds the reason to the failure of a store that did not answer, if the store finds it in time.
   */
  async explained(error: unknown, limitMs?: number): Promise<unknown> {
    if (!(error instanceof StoreError) || isFinal(error) || this.#closing) return error;
    return explain(this.store, error, limitMs);
  }

  /**
   * Asks for a lock and publishes events. Throws if the caller's signal aborts or the client
   * closes. `isTry`: the caller set no `waitMs`, so `storeTimeoutMs` limits the call.
   */
  request(
    target: Target,
    options: RequestOptions,
    mayWait: boolean,
    isTry = false,
  ): Promise<LeaseResult> {
    const context = callContext();
    if (!events.acquire.hasSubscribers) {
      return this.#ask(target, context ? { ...options, context } : options, mayWait, isTry);
    }
    const about = { store: this.store, target, signal: options.signal, mayWait };
    return traced(about, (event) => {
      return this.#ask(target, { ...options, context, event }, mayWait, isTry);
    });
  }

  /** Waits, but returns at once when the signal aborts or the client closes. */
  async pause(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    // `close` has already ended all waits, so it would not end this one.
    if (this.#closing) return;
    const wait = this.#waits.start({ waitMs, signal });
    await new Promise<void>((resume) => wait.onEnd(resume));
    this.#waits.settle(wait);
  }

  /** Continues a lease that another process detached; null if it has ended. */
  async resume(handle: string, options: Options): Promise<HeldLease | null> {
    this.assertOpen();
    const { claim, token, locator } = decodeHandle(handle);
    const { storeTimeoutMs = STORE_TIMEOUT_MS } = options;
    const { release } = options;
    const origin = { kind: kindOf(claim), context: callContext(), release };
    const resumed = resolveOptions({ ttlMs: claim.ttlMs }, this.store.traits, options);
    const asked = { ...claim, storeTimeoutMs };
    const lease = await this.look(() => {
      return this.#leaseRenewer.resume(
        claim.owner,
        () => this.store.resume(asked, token, locator),
        (grant) => this.#keep(grant, resumed, origin),
      );
    });
    if (!lease || !this.#closing) return lease;
    await lease.release();
    throw new ClosedError({ lockName: claim.name, store: this.store.name });
  }

  held(): Lease[] {
    return this.#leaseRenewer.leases();
  }

  /** Whether the holder with this token is a lease of this client. */
  holds(name: string, token: bigint): boolean {
    return this.#leaseRenewer
      .leases()
      .some((lease) => lease.name === name && lease.isHolder(token));
  }

  /** The `run` scopes around requests that wait for a local turn, by the name of the lock. */
  localWaits(): Iterable<{ readonly name: string; readonly inside: Iterable<Enclosing> }> {
    return this.#localQueues.waits();
  }

  close(): Promise<void> {
    // Set before any listener is called, because a listener may call `close` again.
    this.#closing ??= Promise.resolve().then(() => this.#close());
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#waits.close();
    await new Closing(this.store, this.#leaseRenewer, this.#releases).giveBackAll();
    await this.store.close();
  }

  /**
   * Neither this function nor the rest of a grant's path is async: the garbage collector would copy
   * the frames of waiting calls.
   */
  #ask(
    target: Target,
    options: RequestOptions,
    mayWait: boolean,
    isTry: boolean,
  ): Promise<LeaseResult> {
    return new Promise((resolve, reject) => {
      this.assertOpen();
      options.signal?.throwIfAborted();
      const wait = mayWait ? this.#waits.start(options) : null;
      const silenceMs = options.storeTimeoutMs ?? (wait ? STORE_TIMEOUT_MS : TRY_TIMEOUT_MS);
      const request = new LeaseRequest(target, options, wait, silenceMs, this.#localQueues);
      request.expect(resolve, reject);
      if (this.store.traits.scope !== "process") {
        const patienceMs = isTry ? silenceMs : Math.min(silenceMs, GRACE_MS);
        this.#waits.limit(request, this.store, patienceMs);
      }
      this.#send(request, this.#localQueues.for(request));
    });
  }

  #send(request: LeaseRequest, localQueue: LocalQueue | null): void {
    this.#answer(request, localQueue).then(
      (answer) => this.#onAnswer(request, answer),
      (failure: unknown) => void this.#onFailure(request, failure),
    );
  }

  #answer(request: LeaseRequest, localQueue: LocalQueue | null): Promise<LeaseResult | Grant> {
    const { target, options, wait } = request;
    try {
      const asked: Promise<LeaseResult | Grant> = localQueue
        ? localQueue.join(request)
        : this.store.acquire(
            claimFor(this.store, target, options, 1, request.storeTimeoutMs),
            wait,
          );
      if (wait || !options.signal) return asked;
      // A caller that does not wait for the lock must not wait for the store after its abort.
      return unlessAborted(
        asked,
        options.signal,
        (late) => void giveBack(this.#taken(request, late)),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #onAnswer(request: LeaseRequest, answer: LeaseResult | Grant): void {
    const { wait } = request;
    try {
      const taken = this.#taken(request, answer);
      // The grant ended before it arrived: a request that may wait asks again as a new owner.
      if (!taken && wait?.ended === false) return this.#send(request, null);
      // A call that ended before its grant arrived gets no lease.
      const result = taken && !wait?.ended ? taken : giveBack(taken);
      if (result.type === "busy") request.leave();
      const isKnown = !this.#closing && !isOutcomeUnknown(result, wait);
      if (isKnown || request.hasEnded) this.#settle(request, result);
      else void this.#conclude(request, result);
    } catch (failure) {
      void this.#onFailure(request, failure);
    }
  }

  /** Ends a call if the client closes, or if it is unknown whether the lock is held. */
  async #conclude(request: LeaseRequest, result: LeaseResult): Promise<void> {
    const { target, options, wait } = request;
    try {
      let last = result;
      // An outage must not look like a held lock. If time is up and the store has not answered
      // recently, one last try asks it whether the lock is held.
      if (!this.#closing && isOutcomeUnknown(last, wait))
        last = await this.#lastTry(target, options);
      if (this.#closing) {
        if (last.type === "granted") await last.release();
        throw new ClosedError({ lockName: target.name, store: this.store.name });
      }
      this.#settle(request, last);
    } catch (failure) {
      await this.#onFailure(request, failure);
    }
  }

  /** Throws if the outcome is an error for the caller. */
  #settle(request: LeaseRequest, result: LeaseResult): void {
    // If the request has already ended by its limit, the lease is released.
    const told = request.hasEnded ? giveBack(result) : request.told(result);
    this.#end(request);
    request.resolve(told);
  }

  async #onFailure(request: LeaseRequest, failure: unknown): Promise<void> {
    const { target, options, wait } = request;
    // A request that does not wait fails alone; the requests behind it may continue.
    if (wait && !options.signal?.aborted) request.leave(failure);
    if (request.limit) request.limit.failure = failure;
    const error = request.hasEnded ? failure : await this.explained(failure, LAST_TRY_MS);
    this.#end(request);
    const isStoreError = error instanceof StoreError || error instanceof InternalError;
    request.reject(isStoreError ? error.about(target.name, this.store.name) : error);
  }

  #end(request: LeaseRequest): void {
    if (request.lease === null) request.leave();
    if (request.wait) this.#waits.settle(request.wait);
    request.limit?.end();
    request.wait = request.limit = null;
  }

  async #lastTry(target: Target, options: RequestOptions): Promise<LeaseResult> {
    // The request's limit ends it for the caller, and takes a blocked event loop into account.
    const wait = this.#waits.start({ ...options, waitMs: TRY_TIMEOUT_MS });
    wait.endsWithReport = true;
    const request = new LeaseRequest(target, options, wait, TRY_TIMEOUT_MS, this.#localQueues);
    try {
      const claim = claimFor(this.store, target, options, 1, TRY_TIMEOUT_MS);
      const answer = await this.store.acquire(claim, wait);
      const taken = this.#taken(request, answer);
      const result = taken && !options.signal?.aborted ? taken : giveBack(taken);
      if (isOutcomeUnknown(result, wait)) throw unansweredError(TRY_TIMEOUT_MS);
      if (result.type === "granted") return result;
      return { ...result, holder: result.holder ?? wait.holder, grantsInMs: wait.grantsInMs };
    } finally {
      this.#end(request);
    }
  }

  /**
   * Makes the lease for a grant to one request; null if the grant has ended. A local queue makes
   * its leases itself.
   */
  #taken(request: LeaseRequest, answer: LeaseResult | Grant): LeaseResult | null {
    if (answer.type === "busy" || answer instanceof HeldLease) return answer;
    const lease = this.#keep(
      answer,
      request.options,
      request,
      request.mayBeShared ? request : null,
    );
    if (answer.isHandoff) lease?.publishHandoff(false);
    return lease;
  }

  /**
   * `request`: the user of the grant if a local queue may take it over. Null if the grant has
   * ended.
   */
  #keep(
    grant: Grant,
    options: Options,
    origin: Origin,
    request: LeaseRequest | null = null,
  ): HeldLease | null {
    const held = this.#leaseRenewer.keep(grant, request, options);
    if (!held) return null;
    const lease = new HeldLease(held, origin, this.#leaseRenewer, request ?? this.#releases);
    if (request) request.onGrant(lease);
    else held.user = lease;
    lease.publishHeld();
    return lease;
  }
}

/** A handle does not name the kind of lock, so it follows from the claim. */
function kindOf({ space, mode, limit }: Claim): LockKind {
  if (space !== "lock") return space;
  if (mode === "exclusive") return "mutex";
  return limit === NO_LIMIT ? "read" : "semaphore";
}

/** Time is up, and it is unknown whether the lock is held. */
function isOutcomeUnknown(result: LeaseResult, wait: AcquireWait | null): boolean {
  return (
    result.type === "busy" && !result.mark && wait?.endedBy === "time" && !wait.hasRecentReport
  );
}

/** Releases a lease that no caller gets. */
function giveBack(result: LeaseResult | null): Busy {
  if (result?.type === "busy") return result;
  void result?.release();
  return { type: "busy", holder: null, mark: null };
}
