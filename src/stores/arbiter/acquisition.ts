/**
 * One acquisition, from the first request to a grant or the end of the wait.
 *
 * It believes a grant in three cases only: its own request was answered with one (the deadline
 * counts from the moment that very request was sent); a touch of its client was answered with one
 * (likewise); or a push says so and the store's clock is known well enough to tell that the push is
 * fresh. In the last two the grant lives for the offer window until its confirm is answered, and so
 * does the belief. Whatever else happens, the owner is released in the end, with a tombstone where
 * a copy of a request may still be under way: an owner that gave up never holds again.
 */
import { StoreError } from "../../errors.js";
import { foreignData } from "../../foreign-data.js";
import { LONGEST_TOUCH_US } from "../../rules/bounds.js";
import type { Acquire, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf, marginMs } from "../../rules/margin.js";
import type { Busy, Claim, Grant, HolderView, MarkView, Wait } from "../../store.js";
import { SilenceLimit, type SilenceListener } from "../../time/silence-limit.js";
import type { Timer } from "../../time/timers.js";
import { ArbiterGrant } from "./arbiter-grant.js";
import { type Answer, CALL_TIMEOUT_MS, type Recipient } from "./channel.js";
import { Confirmation, type OfferTaker } from "./confirmation.js";
import type { Surroundings } from "./surroundings.js";
import { holderView, markView } from "./views.js";

const FIRST_RETRY_MS = 20;
export const LONGEST_RETRY_MS = 1_000;

/** So many requests in a row that came too late: the store is too far away for this ttl. */
const MOST_STALE = 3;

/** This owner can never hold, through no fault of the caller: try again under another. */
export interface Again {
  readonly type: "again";
  readonly reason: "revoked" | "late";
}

export type Outcome = Grant | Busy | Again;

export class Acquisition implements Recipient<Acquire>, OfferTaker, SilenceListener {
  readonly key: string;
  readonly #claim: Claim;
  readonly #wait: Wait | null;
  readonly #around: Surroundings;
  readonly #meta: string;
  readonly #resolve: (outcome: Outcome) => void;
  readonly #reject: (error: unknown) => void;
  #silence: SilenceLimit | null = null;
  #settled = false;
  /** The store may know this owner: whatever happens, it has to be withdrawn. */
  #entered = false;
  /** The latest store time at which any request of this owner may still act. */
  #notAfterUs = 0;
  /** Requests without an answer; with any, or after a failed one, a copy may still arrive. */
  #underWay = 0;
  #unsure = false;
  #failures = 0;
  #stale = 0;
  #lastError: unknown;
  #startMs = 0;
  #retry: Timer | undefined;
  #grant: ArbiterGrant | null = null;
  /** The token whose confirm is under way. */
  #confirming = 0;

  constructor(
    key: string,
    claim: Claim,
    wait: Wait | null,
    around: Surroundings,
    resolve: (outcome: Outcome) => void,
    reject: (error: unknown) => void,
  ) {
    this.key = key;
    this.#claim = claim;
    this.#wait = wait;
    this.#around = around;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#meta = around.metaText(claim.meta);
  }

  get owner(): string {
    return this.#claim.owner;
  }

  get ttlMs(): number {
    return this.#claim.ttlMs;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  /**
   * How often to touch the name while this waits: within what the store was promised, and so often
   * that a store which lost one touch or its answer is not yet taken to be silent. An acquisition
   * that does not wait asks again itself.
   */
  get touchMs(): number {
    const periodMs = Math.min(this.#offerMs, this.#claim.storeTimeoutMs / 3);
    return this.#wait ? periodMs : Math.min(periodMs, LONGEST_RETRY_MS);
  }

  start(): void {
    this.#wait?.onEnd(() => this.giveUp());
    if (this.#settled) return;
    this.#startMs = this.#around.port.clock.nowMs();
    // The first request is answered or has failed by its own time-out; silence comes after that.
    if (this.#claim.storeTimeoutMs < CALL_TIMEOUT_MS) this.#hearken();
    this.ask();
  }

  /** Sends the request, or repeats it: the store knows the owner, so both are the same. */
  ask(): void {
    this.#retry?.cancel();
    const greeting = this.#around.channel.greet(this.key);
    if (!greeting) return this.#send();
    greeting.then(
      () => this.#send(),
      (error) => this.onRefusal(error),
    );
  }

  onAnswer(answer: Answer<Acquire>): void {
    this.#underWay -= 1;
    // rule: resent-request-may-have-copies
    if (answer.resent) this.#unsure = true;
    // A push may overtake the reply: with the last of them, nothing of this owner is under way.
    if (this.#grant) this.#grant.tombstoneUs = this.#tombstoneUs();
    // After the end of this acquisition, its withdrawal has seen to the rest.
    if (!this.#settled) this.#onAnswer(answer);
  }

  onFailure(error: unknown): void {
    this.#underWay -= 1;
    this.#unsure = true;
    this.onRefusal(error);
  }

  /** The store refused to answer about this name: asked again later, where that may help. */
  onRefusal(error: unknown): void {
    if (this.#settled) return;
    if (error instanceof StoreError && !error.retryable) return this.#fail(error);
    const pauseMs = Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, LONGEST_RETRY_MS);
    this.#lastError = error;
    this.#hearken();
    this.#askLater(pauseMs);
  }

  onSilence(): void {
    const { storeTimeoutMs } = this.#claim;
    this.#fail(
      new StoreError(`The store was silent for ${Math.round(storeTimeoutMs)} ms.${this.#why()}`, {
        outcome: "unknown",
        cause: this.#lastError,
      }),
    );
  }

  /** The store answered its client about this name, so it is not silent. */
  heard(holder: HolderView | null, ahead: number | null = null): void {
    this.#silence?.heard();
    this.#wait?.report(holder, ahead);
  }

  /** A push: the store granted, some time ago, by its own clock. */
  onPush(pushed: PushedGrant): void {
    if (this.#settled || this.#confirming === pushed.token) return;
    const { channel, believesPushes, port } = this.#around;
    const receivedMs = port.clock.nowMs();
    const deadlineMs = channel.time(this.key).believe(pushed, receivedMs);
    this.#takeOffer(pushed, believesPushes ? deadlineMs : null, receivedMs);
  }

  /** A touch was answered with a grant whose push was lost. */
  onMissedGrant(pushed: PushedGrant, sentMs: number, nowUs: number): void {
    if (this.#settled || this.#confirming === pushed.token) return;
    const lengthMs = (pushed.expiryUs - pushed.grantedUs) / 1000;
    const deadlineMs = sentMs + (pushed.expiryUs - nowUs) / 1000 - marginMs(lengthMs);
    this.#takeOffer(pushed, this.#around.believesPushes ? deadlineMs : null, sentMs);
  }

  /** The work of a `once` is done. */
  onMark(mark: MarkView): void {
    this.#settle(null)?.({ type: "busy", holder: null, mark });
  }

  /** Its grant was revoked before it got here. */
  onRevoked(): void {
    this.#settle(null)?.({ type: "again", reason: "revoked" });
  }

  /** Nobody waits for it any more. */
  giveUp(): void {
    this.#settle(null)?.({ type: "busy", holder: null, mark: null });
  }

  /** A holder that has expired is in the way only until the store has dropped it. */
  get #hasTime(): boolean {
    return this.#around.port.clock.nowMs() - this.#startMs < this.#claim.storeTimeoutMs;
  }

  get #offerMs(): number {
    return this.#around.offerMs(this.#claim.ttlMs);
  }

  #send(): void {
    if (this.#settled) return;
    this.#underWay += 1;
    this.#around.channel.post(this.#request(), this);
  }

  #request(): Acquire {
    const { channel, client, port, seenToken } = this.#around;
    const { owner, mode, weight, limit, span, ttlMs, storeTimeoutMs } = this.#claim;
    // An answer later than this is of no use: the lease would be over, or nobody listens any more.
    const windowMs = Math.min(ttlMs, storeTimeoutMs);
    const notAfterUs = channel.time(this.key).storeUs(port.clock.nowMs() + windowMs);
    this.#notAfterUs = Math.max(this.#notAfterUs, notAfterUs);
    const offerUs = toUs(this.#offerMs);
    return {
      type: "acquire",
      key: this.key,
      owner,
      client,
      mode,
      weight,
      limit,
      span,
      ttlUs: toUs(ttlMs),
      meta: this.#meta,
      enqueue: this.#wait !== null,
      offerUs,
      touchUs: Math.min(offerUs, LONGEST_TOUCH_US),
      notAfterUs,
      seenToken: seenToken(),
    };
  }

  #onAnswer({ reply, sentMs }: Answer<Acquire>): void {
    switch (reply.type) {
      case "granted": {
        this.#entered = true;
        // rule: deadline-counts-from-sending
        const deadlineMs = deadlineOf(sentMs, reply.remainingUs / 1000, this.#claim.ttlMs);
        this.accept(reply, deadlineMs);
        return;
      }
      case "queued":
        this.#entered = true;
        this.#failures = 0;
        this.#stale = 0;
        this.#hearken();
        this.heard(reply.holder && holderView(reply.holder), reply.ahead);
        this.#around.onQueued(this, reply.ahead, reply.dueUs / 1000);
        return;
      case "busy": {
        if (reply.holder && reply.dueUs <= 0 && this.#hasTime) return this.#askLater(0);
        const holder = reply.holder && holderView(reply.holder);
        this.#settle(null)?.({ type: "busy", holder, mark: null });
        return;
      }
      case "marked":
        this.onMark(markView(reply));
        return;
      case "stale":
        if (reply.reason === "ended") this.#settle(null)?.({ type: "again", reason: "revoked" });
        else this.#onStale();
    }
  }

  /** The clocks stepped apart, and this very answer told how far: the next request knows. */
  #onStale(): void {
    this.#stale += 1;
    this.#hearken();
    this.#silence?.heard();
    if (this.#stale < MOST_STALE) this.#askLater(this.#stale === 1 ? 0 : FIRST_RETRY_MS);
    else this.#settle(null)?.({ type: "again", reason: "late" });
  }

  /** Confirms a handed-off grant: the confirm is on its way before anybody hears of the grant. */
  #takeOffer(pushed: PushedGrant, deadlineMs: number | null, fromMs: number): void {
    this.#confirming = pushed.token;
    this.#entered = true;
    const confirmation = new Confirmation(pushed, this, this.#around);
    const leastMs = this.#claim.leastMs ?? 0;
    const nowMs = this.#around.port.clock.nowMs();
    // rule: offer-outlasts-the-grace
    const isBelieved = deadlineMs !== null && deadlineMs - nowMs > leastMs;
    // rule: offer-is-believed-until-it-lapses
    const grant = isBelieved ? this.accept(pushed, deadlineMs) : null;
    const lapseMs = fromMs + (pushed.expiryUs - pushed.grantedUs) / 1000;
    confirmation.follow(grant, grant?.deadlineMs ?? lapseMs).catch((cause: unknown) => {
      this.onRefusal(foreignData("the reply to a confirm", cause));
    });
  }

  onUnconfirmed(token: number): void {
    if (this.#confirming !== token) return;
    this.#confirming = 0;
    this.ask();
  }

  /** Takes a grant, unless it is over already: then it is given back, never returned. */
  accept(granted: { token: number; span: number }, deadlineMs: number): ArbiterGrant | null {
    // rule: late-grant-is-given-back
    if (this.#around.port.clock.exactMs() >= deadlineMs) {
      this.#settle(null)?.({ type: "again", reason: "late" });
      return null;
    }
    const { key } = this;
    const grant = new ArbiterGrant(this.#claim, key, granted, deadlineMs, this.#tombstoneUs());
    grant.isHandoff = this.#confirming === granted.token;
    this.#grant = grant;
    this.#settle(grant)?.(grant);
    return grant;
  }

  #askLater(pauseMs: number): void {
    const { timers, random } = this.#around.port;
    this.#retry?.cancel();
    this.#retry = timers.after(pauseMs * (0.5 + random.fraction() / 2), () => this.ask(), true);
  }

  /** It did not end with the first answer: from now on the store must not fall silent. */
  #hearken(): void {
    if (this.#silence || this.#around.isLocal) return;
    const { port, limits } = this.#around;
    this.#silence = new SilenceLimit(port, limits, this.#claim.storeTimeoutMs, this.#startMs, this);
  }

  #why(): string {
    return this.#lastError instanceof Error ? ` ${this.#lastError.message}` : "";
  }

  #fail(error: StoreError): void {
    if (this.#settle(null)) this.#reject(error);
  }

  /** Returns the way to tell the outcome, once. */
  #settle(grant: ArbiterGrant | null): ((outcome: Outcome) => void) | undefined {
    if (this.#settled) return undefined;
    this.#settled = true;
    this.#retry?.cancel();
    this.#silence?.end();
    const { withdraw, onSettled } = this.#around;
    onSettled(this, grant);
    // rule: every-end-withdraws
    if (!grant && (this.#entered || this.#unsure || this.#underWay > 0)) {
      withdraw(this.key, this.owner, this.#tombstoneUs(), this.#claim.ttlMs);
    }
    return this.#resolve;
  }

  /** A copy may act up to and with `notAfterUs`: the tombstone stands for longer. */
  #tombstoneUs(): number {
    // rule: tombstone-outlives-copies
    return this.#unsure || this.#underWay > 0 ? this.#notAfterUs + 1 : 0;
  }
}

function toUs(durationMs: number): number {
  return Math.ceil(durationMs * 1000);
}
