/**
 * The life of leases in this process: acquires them, keeps them, gives them back. One client per
 * store.
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

/** A store tells one listener what becomes of its grants, so it has one client. */
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

  /** A look at the store; one that `close` cut off says so, whatever the store made of it. */
  async look<T>(ask: () => Promise<T>): Promise<T> {
    this.assertOpen();
    try {
      return await ask();
    } catch (error) {
      this.assertOpen();
      throw await this.explained(error);
    }
  }

  /** The failure of a store that did not answer, with the reason if the store finds one in time. */
  async explained(error: unknown, limitMs?: number): Promise<unknown> {
    if (!(error instanceof StoreError) || isFinal(error) || this.#closing) return error;
    return explain(this.store, error, limitMs);
  }

  /**
   * Asks for a lock, and tells about it. Throws when the caller's signal or the client ends.
   * `isTry`: the caller set no `waitMs`, so that `storeTimeoutMs` says how long the call may take.
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

  /** Lets time pass; over at once when the signal aborts or the client closes. */
  async pause(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    // `close` has ended all waits already: it would not end this one.
    if (this.#closing) return;
    const wait = this.#waits.start({ waitMs, signal });
    await new Promise<void>((resume) => wait.onEnd(resume));
    this.#waits.settle(wait);
  }

  /** Continues a lease that another process handed over; null when it is gone. */
  async resume(handle: string, options: Options): Promise<HeldLease | null> {
    this.assertOpen();
    const { claim, token, locator } = decodeHandle(handle);
    const { storeTimeoutMs = STORE_TIMEOUT_MS } = options;
    const { release } = options;
    const origin = { kind: kindOf(claim), context: callContext(), release };
    const resumed = resolveOptions({ ttlMs: claim.ttlMs }, this.store.traits, options);
    const asked = { ...claim, storeTimeoutMs };
    const grant = await this.look(() => {
      return this.#leaseRenewer.resume(claim.owner, () => this.store.resume(asked, token, locator));
    });
    if (!grant) return null;
    const lease = this.#keep(grant, resumed, origin);
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

  /** The runs around calls that wait for a turn in this process, by the name they wait for. */
  localWaits(): Iterable<{ readonly name: string; readonly inside: Iterable<Enclosing> }> {
    return this.#localQueues.waits();
  }

  close(): Promise<void> {
    // Set before any listener hears of it: a listener may call `close` in its turn.
    this.#closing ??= Promise.resolve().then(() => this.#close());
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#waits.close();
    await new Closing(this.store, this.#leaseRenewer, this.#releases).giveBackAll();
    await this.store.close();
  }

  /**
   * No async function, nor on the rest of the way of a grant: the garbage collector would have to
   * copy its frame while the call waits.
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
      // A caller that does not wait for the lock is not kept waiting by the store either.
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
      // The grant ended on its way: the call goes on under a new owner, if it may wait.
      if (!taken && wait?.ended === false) return this.#send(request, null);
      // A call that was ended while its grant was under way gets no lease.
      const result = taken && !wait?.ended ? taken : giveBack(taken);
      if (result.type === "busy") request.leave();
      const isKnown = !this.#closing && !isOutcomeUnknown(result, wait);
      if (isKnown || request.hasEnded) this.#settle(request, result);
      else void this.#conclude(request, result);
    } catch (failure) {
      void this.#onFailure(request, failure);
    }
  }

  /** The end of a call that the client closes, or that does not know whether the lock is held. */
  async #conclude(request: LeaseRequest, result: LeaseResult): Promise<void> {
    const { target, options, wait } = request;
    try {
      let last = result;
      // An outage must not look like a held lock: when the time is over and the store has not
      // answered of late, one last try lets the store itself say that the lock is held.
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

  /** Throws if the caller is told a failure. */
  #settle(request: LeaseRequest, result: LeaseResult): void {
    // The limit of the call was faster.
    const told = request.hasEnded ? giveBack(result) : request.told(result);
    this.#end(request);
    request.resolve(told);
  }

  async #onFailure(request: LeaseRequest, failure: unknown): Promise<void> {
    const { target, options, wait } = request;
    // A call that does not wait fails where a call that waits may go on.
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
    // The limit of the call ends it for the caller, and knows whether the event loop was blocked.
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
   * The lease for a grant that the store gave to one call; null if the grant has ended. A local
   * queue makes its leases itself.
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
   * `call`: the user, where a local queue may take the held grant over. Null if the grant has
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

/** A handle does not say by which kind of lock its lease was acquired. */
function kindOf({ space, mode, limit }: Claim): LockKind {
  if (space !== "lock") return space;
  if (mode === "exclusive") return "mutex";
  return limit === NO_LIMIT ? "read" : "semaphore";
}

/** The time is over, and whether the lock is held is not known. */
function isOutcomeUnknown(result: LeaseResult, wait: AcquireWait | null): boolean {
  return (
    result.type === "busy" && !result.mark && wait?.endedBy === "time" && !wait.hasRecentReport
  );
}

/** No one wants the lease any more, or there is none. */
function giveBack(result: LeaseResult | null): Busy {
  if (result?.type === "busy") return result;
  void result?.release();
  return { type: "busy", holder: null, mark: null };
}
