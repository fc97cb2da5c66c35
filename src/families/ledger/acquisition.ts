/**
 * The acquisition of one owner, from its first request to a grant or the end of the wait.
 *
 * A grant can arrive in the answer to the owner's request. Its deadline is then measured from when
 * the request was sent. Or the store hands the lock to a waiter, by a push or in the answer to a
 * heartbeat. Such an offer lapses at the end of its window unless it is confirmed. The acquisition
 * relies on an offer at once, for the window only, if its age is certain: from the send time of the
 * heartbeat, or because the store's clock is known well enough to see that the push is fresh.
 * Otherwise it waits for the answer to the confirm.
 *
 * An acquisition that ends without a grant withdraws its owner if the store may know that owner.
 */

import type { AcquireResult, Claim, HolderView, MarkView, Wait } from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import { isFinal } from "../../errors/index.js";
import { replyError } from "../../events/foreign-data.js";
import type { Acquire, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import { keyOf } from "../../rules/name.js";
import { Backoff, jittered } from "../../time/backoff.js";
import { SilenceLimit, type SilenceListener } from "../../time/silence-limit.js";
import type { Timer } from "../../time/timers.js";
import {
  type AttemptResult,
  lateGrantError,
  MAX_LATE_GRANTS,
  silenceError,
} from "../acquire-errors.js";
import type { ArbiterClient } from "./arbiter-client.js";
import { type Answer, CALL_TIMEOUT_MS, type Recipient } from "./command-batcher.js";
import { type Believable, Confirmation, type ConfirmListener } from "./confirmation.js";
import { LedgerGrant } from "./ledger-grant.js";
import { OwnerRequests } from "./owner-requests.js";
import { grantsInMs, holderView, markView } from "./views.js";

const FIRST_RETRY_MS = 20;
export const MAX_RETRY_MS = 1_000;
const RETRY_PAUSES = { firstMs: FIRST_RETRY_MS, longestMs: MAX_RETRY_MS };

/** After this many stale requests, the store is too slow for this ttl. */
const MAX_STALE = 3;

const ignored = (): void => {};

export class Acquisition implements Recipient<Acquire>, SilenceListener {
  readonly key: string;
  readonly #claim: Claim;
  readonly #wait: Wait | null;
  readonly #client: ArbiterClient;
  readonly #requests: OwnerRequests;
  /** How many attempts in a row, just before this one, got their grant too late. */
  readonly #lateGrants: number;
  #resolve: (result: AcquireResult) => void = ignored;
  #reject: (error: unknown) => void = ignored;
  #isSettled = false;
  #startMs = 0;
  #silence: SilenceLimit | null = null;
  #backoff: Backoff | null = null;
  #retry: Timer | undefined;
  #lastError: unknown;
  #stale = 0;
  /** Tokens revoked during this acquisition. */
  #refused: bigint[] | null = null;
  /** The confirm of the latest offer. */
  #confirmation: Confirmation | null = null;
  /** Whether a release of this name was unanswered when the latest request was sent. */
  #followsRelease = false;

  constructor(claim: Claim, wait: Wait | null, client: ArbiterClient, lateGrants = 0) {
    this.key = keyOf(claim.space, claim.name);
    this.#claim = claim;
    this.#wait = wait;
    this.#client = client;
    this.#lateGrants = lateGrants;
    this.#requests = new OwnerRequests(this.key, claim, client);
  }

  get owner(): string {
    return this.#claim.owner;
  }

  /**
   * The heartbeat period while this acquisition is queued. It keeps the promise made to the store,
   * and is short enough that one lost heartbeat does not look like a silent store. An acquisition
   * that does not wait is polled at least every `MAX_RETRY_MS`.
   */
  get heartbeatMs(): number {
    const offerMs = this.#client.offerMs(this.#claim.ttlMs);
    const periodMs = Math.min(offerMs, this.#claim.storeTimeoutMs / 3);
    return this.#wait ? periodMs : Math.min(periodMs, MAX_RETRY_MS);
  }

  start(resolve: (result: AcquireResult) => void, reject: (error: unknown) => void): void {
    this.#resolve = resolve;
    this.#reject = reject;
    this.#client.acquisitions.add(this);
    this.#wait?.onEnd(() => this.giveUp());
    if (this.#isSettled) return;
    this.#startMs = this.#client.runtime.clock.nowMs();
    // The timeout of the first request covers a longer limit; it is started when that one is done.
    if (this.#claim.storeTimeoutMs < CALL_TIMEOUT_MS) this.#startSilenceLimit();
    this.ask();
  }

  /** Sends or repeats the request. Repeating is safe, because the store recognizes the owner. */
  ask(): void {
    this.#retry?.cancel();
    const clockSync = this.#client.batcher.syncClock(this.key);
    if (!clockSync) return this.#send();
    clockSync.then(
      () => this.#send(),
      (error) => this.onRefusal(error),
    );
  }

  onAnswer(answer: Answer<Acquire>): void {
    this.#requests.onAnswer(answer);
    if (!this.#isSettled) this.#onAnswer(answer);
    else if (answer.reply.type === "stale") this.#onStaleCopy(answer.reply.reason);
  }

  onFailure(error: unknown): void {
    this.#requests.onFailure();
    this.onRefusal(error);
  }

  /** Retries later after a failure, unless a retry cannot succeed. */
  onRefusal(error: unknown): void {
    if (this.#isSettled) return;
    if (isFinal(error)) return this.#fail(error);
    this.#lastError = error;
    this.#startSilenceLimit();
    this.#backoff ??= new Backoff(this.#client.runtime.random, RETRY_PAUSES);
    this.#askIn(this.#backoff.nextMs());
  }

  onSilence(): void {
    this.#fail(silenceError(this.#claim.storeTimeoutMs, this.#lastError));
  }

  /** Reports an answer about this name, which shows that the store is not silent. */
  heard(holder: HolderView | null, ahead: number | null, inMs: number): void {
    // rule: answer-ends-the-silence
    this.#silence?.heard();
    this.#wait?.report(holder, ahead, inMs);
  }

  /**
   * Handles an offer: the store handed the lock to this owner, and takes it back at `lapseMs`
   * unless it is confirmed. The owner may rely on the offer at once, until `deadlineMs`. If that is
   * null, the answer to the confirm decides.
   */
  onOffer(offer: PushedGrant, deadlineMs: number | null, lapseMs: number): void {
    if (this.#isSettled || this.#confirmation?.token === offer.token) return;
    this.#requests.isEntered = true;
    this.#confirmation?.cancel();
    const confirmation = new Confirmation(this.key, this.#claim, offer, this.#client);
    this.#confirmation = confirmation;
    // Send the confirm before any caller gets the grant.
    confirmation.send();
    try {
      const usefulMs = this.#client.runtime.clock.nowMs() + (this.#claim.minUsefulMs ?? 0);
      // rule: offer-outlasts-the-grace
      const isBelieved = deadlineMs !== null && deadlineMs > usefulMs;
      if (!isBelieved) return confirmation.tell(this.#listener(confirmation), lapseMs);
      // rule: offer-is-believed-until-it-lapses
      this.#accept(offer, deadlineMs);
    } catch (cause) {
      this.onRefusal(replyError("a handed-off grant", cause));
    }
  }

  /** Ends as busy, because the work of the `once` is done. */
  onMark(mark: MarkView): void {
    this.#settle({ type: "busy", holder: null, mark });
  }

  /** Tries again with a new owner, because the grant was revoked before it arrived here. */
  onRevoked(): void {
    this.#settle({ type: "again", reason: "ended" });
  }

  /** Remembers a token that this client revoked, in case it belongs to this owner. */
  refuse(token: bigint): void {
    this.#refused ??= [];
    this.#refused.push(token);
  }

  giveUp(): void {
    if (!this.#isSettled) this.#settle({ type: "busy", holder: null, mark: null });
  }

  #send(): void {
    if (this.#isSettled) return;
    this.#followsRelease = this.#client.releases.has(this.key);
    this.#client.batcher.post(this.#requests.next(this.#wait !== null), this);
  }

  #onAnswer({ reply, sentMs }: Answer<Acquire>): void {
    switch (reply.type) {
      case "granted": {
        this.#requests.isEntered = true;
        // rule: deadline-counts-from-sending
        const deadlineMs = deadlineOf(sentMs, reply.remainingUs / 1000, this.#claim.ttlMs);
        this.#accept(reply, deadlineMs);
        return;
      }
      case "queued":
        this.#requests.isEntered = true;
        this.#backoff?.reset();
        this.#stale = 0;
        this.#startSilenceLimit();
        this.#client.heartbeats.keep(this, reply.ahead, reply.dueUs / 1000);
        this.heard(reply.holder && holderView(reply.holder), reply.ahead, grantsInMs(reply));
        return;
      case "busy": {
        // An expired holder blocks only until the store drops it.
        const hasExpired = reply.holder !== null && reply.dueUs <= 0;
        // A holder that this client is releasing blocks only until the store gets the release. A
        // release that was refused or lost is sent again, so this request may have overtaken it.
        const isReleasing = this.#client.releases.has(this.key);
        const mayBeOurs = reply.holder !== null && (isReleasing || this.#followsRelease);
        const elapsedMs = this.#client.runtime.clock.nowMs() - this.#startMs;
        if ((hasExpired || mayBeOurs) && elapsedMs < this.#claim.storeTimeoutMs) {
          return this.#askIn(
            isReleasing ? jittered(FIRST_RETRY_MS, this.#client.runtime.random) : 0,
          );
        }
        const holder = reply.holder && holderView(reply.holder);
        return this.#settle({ type: "busy", holder, mark: null, grantsInMs: grantsInMs(reply) });
      }
      case "marked":
        return this.onMark(markView(reply));
      case "stale":
        return reply.reason === "ended" ? this.onRevoked() : this.#onStale();
    }
  }

  /** Handles a stale reply to a request that settled otherwise, by another answer or a push. */
  #onStaleCopy(reason: "late" | "ended"): void {
    const { grants } = this.#client;
    const grant = grants.of(this.owner);
    if (grant && reason === "ended") grants.lose(grant, "revoked", "");
  }

  /** Asks again with the store's time, which this answer brought: a clock may have stepped. */
  #onStale(): void {
    this.#stale += 1;
    this.#startSilenceLimit();
    this.#silence?.heard();
    if (this.#stale >= MAX_STALE) return this.#settle({ type: "again", reason: "late" });
    this.#askIn(this.#stale === 1 ? 0 : jittered(FIRST_RETRY_MS, this.#client.runtime.random));
  }

  /** A listener that accepts the grant if it is confirmed, and otherwise asks again. */
  #listener(confirmation: Confirmation): ConfirmListener {
    return {
      onConfirmed: (granted) => {
        // rule: unproven-handoff-waits-for-its-confirm
        if (!this.#isSettled && this.#confirmation === confirmation) this.#onConfirmed(granted);
      },
      onRefusal: (error) => this.onRefusal(error),
    };
  }

  #onConfirmed(granted: Believable | null): void {
    if (granted) return this.#accept(granted, granted.deadlineMs);
    this.#confirmation = null;
    this.ask();
  }

  /** Accepts a grant. If its deadline has passed, releases it and tries again. */
  #accept(granted: { token: number; span: number }, deadlineMs: number): void {
    const nowMs = this.#client.runtime.clock.exactMs();
    // rule: late-grant-is-given-back
    if (nowMs >= deadlineMs) return this.#settle({ type: "again", reason: "late" });
    const grant = new LedgerGrant(this.#claim, this.key, granted, deadlineMs);
    if (this.#refused?.some((token) => grant.hasToken(token))) return this.onRevoked();
    assert(deadlineMs <= nowMs + this.#claim.ttlMs, "a grant is believed for its ttl at most");
    assert(granted.token > this.#requests.seenToken, "a token is above all seen before it");
    grant.isHandoff = this.#confirmation?.token === granted.token;
    this.#requests.onGrant(grant);
    this.#settle(grant);
    // Whichever answer brought the grant, the answer to its confirm extends or ends it.
    // rule: confirm-judges-the-grant
    if (grant.isHandoff) this.#confirmation?.extend(grant);
  }

  #askIn(pauseMs: number): void {
    this.#retry?.cancel();
    this.#retry = this.#client.runtime.timers.after(pauseMs, () => this.ask(), this.#keepsAlive);
  }

  /**
   * Whether the timers keep the process alive. An acquisition that does not wait is kept alive by
   * its time limit in the client; if its caller aborts it, nobody waits for it any more. With a
   * store in this process, calls have no such limit, so the timers must.
   */
  get #keepsAlive(): boolean {
    return this.#wait !== null || this.#client.arbiter.traits.scope === "process";
  }

  /** Starts the silence limit, because the first answer did not end the acquisition. */
  #startSilenceLimit(): void {
    const { arbiter, runtime, limits } = this.#client;
    if (this.#silence || arbiter.isLocal) return;
    const { storeTimeoutMs: limitMs } = this.#claim;
    this.#silence = new SilenceLimit(runtime, limits, this, {
      limitMs,
      sinceMs: this.#startMs,
      keepsAlive: this.#keepsAlive,
    });
  }

  #fail(error: unknown): void {
    this.#leave(null);
    this.#reject(error);
  }

  #settle(result: AttemptResult<LedgerGrant>): void {
    this.#leave(result.type === "granted" ? result : null);
    if (result.type !== "again") return this.#resolve(result);
    const lateGrants = result.reason === "late" ? this.#lateGrants + 1 : 0;
    const { arbiter, runtime } = this.#client;
    if (lateGrants > 0 && (!this.#wait || lateGrants >= MAX_LATE_GRANTS)) {
      return this.#reject(lateGrantError(this.#claim, arbiter.name));
    }
    const claim = { ...this.#claim, owner: runtime.random.id() };
    const next = new Acquisition(claim, this.#wait, this.#client, lateGrants);
    next.start(this.#resolve, this.#reject);
  }

  #leave(grant: LedgerGrant | null): void {
    assert(!this.#isSettled, "a settled acquisition does not settle again");
    this.#isSettled = true;
    this.#retry?.cancel();
    this.#silence?.end();
    const { acquisitions, heartbeats, grants, cleanups } = this.#client;
    heartbeats.leave(this);
    this.#confirmation?.cancel();
    if (grant) return grants.adopt(grant);
    acquisitions.remove(this);
    const { isEntered, mayStillArrive, tombstoneUs } = this.#requests;
    // rule: every-end-withdraws
    if (isEntered || mayStillArrive) {
      cleanups.start(this.key, this.owner, tombstoneUs, this.#claim.ttlMs);
    }
  }
}
