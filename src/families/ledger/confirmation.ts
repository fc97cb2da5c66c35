import type { Claim } from "../../contract/store.js";
import type { Confirm, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import { Backoff } from "../../time/backoff.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer, Recipient } from "./command-batcher.js";
import type { LedgerGrant } from "./ledger-grant.js";

const FIRST_RETRY_MS = 20;

/** A grant of the store, and the local deadline until which this client may rely on it. */
export interface Believable {
  readonly token: number;
  readonly span: number;
  readonly deadlineMs: number;
}

/** The acquisition that waits for the answer to the confirm. */
export interface ConfirmListener {
  /** Called with the confirmed grant; null if it was not confirmed in time. */
  onConfirmed(granted: Believable | null): void;
  /** Called when the answer could not be processed. */
  onRefusal(error: unknown): void;
}

/**
 * The confirm of an offer, repeated until it is answered or the offer window ends. The first
 * request is sent before any caller gets the grant. If the client already relies on the grant, it
 * does so for the offer window only, and the answer extends or ends it; otherwise the acquisition
 * waits for the answer. This code is on the path of every handoff, so it creates no promise, and a
 * timer only after a failure.
 */
export class Confirmation implements Recipient<Confirm> {
  readonly #offer: PushedGrant;
  readonly #claim: Claim;
  readonly #client: ArbiterClient;
  readonly #command: Confirm;
  #answer: Answer<Confirm> | null = null;
  #hasFailed = false;
  /** Who gets the answer: a grant that is already relied on, or a listener. */
  #believed: LedgerGrant | null = null;
  #listener: ConfirmListener | null = null;
  #untilMs = 0;
  #backoff: Backoff | null = null;
  #isCancelled = false;

  constructor(key: string, claim: Claim, offer: PushedGrant, client: ArbiterClient) {
    this.#offer = offer;
    this.#claim = claim;
    this.#client = client;
    this.#command = { type: "confirm", key, owner: claim.owner };
  }

  get token(): number {
    return this.#offer.token;
  }

  send(): void {
    this.#hasFailed = false;
    // rule: confirm-is-sent-at-once
    this.#client.batcher.postNow(this.#command, this);
  }

  /** Stops the retries, because the acquisition has ended, unless a grant needs the answer. */
  cancel(): void {
    this.#isCancelled = true;
  }

  /** Uses the answer to extend or end this grant. Without an answer, it ends at its deadline. */
  extend(grant: LedgerGrant): void {
    this.#believed = grant;
    this.#untilMs = grant.deadlineMs;
    this.#goOn();
  }

  /** Reports the result to the listener, at `untilMs` at the latest. */
  tell(listener: ConfirmListener, untilMs: number): void {
    this.#listener = listener;
    this.#untilMs = untilMs;
    this.#goOn();
  }

  onAnswer(answer: Answer<Confirm>): void {
    this.#answer = answer;
    this.#goOn();
  }

  onFailure(error: unknown): void {
    if (this.#answer) return this.#listener?.onRefusal(error);
    this.#hasFailed = true;
    this.#goOn();
  }

  /** Waits for both: the outcome of the first request, and who gets it. Either may come first. */
  #goOn(): void {
    const isJudged = this.#believed !== null || this.#listener !== null;
    if (!isJudged) return;
    if (this.#answer) this.#onResult(this.#answer);
    else if (this.#hasFailed) this.#repeat();
  }

  #onResult(answer: Answer<Confirm>): void {
    if (this.#believed) return this.#judge(this.#believed, answer);
    const { reply, sentMs } = answer;
    if (reply.type !== "renewed") return this.#listener?.onConfirmed(null);
    const { token, span, remainingUs } = reply;
    const deadlineMs = deadlineOf(sentMs, remainingUs / 1000, this.#claim.ttlMs);
    this.#listener?.onConfirmed({ token, span, deadlineMs });
  }

  #judge(grant: LedgerGrant, { reply, sentMs }: Answer<Confirm>): void {
    const { grants } = this.#client;
    if (reply.type !== "renewed") grants.lose(grant, reply.reason, reply.detail);
    else if (reply.token !== this.token) grants.lose(grant, "replaced", "");
    else grant.extend(deadlineOf(sentMs, reply.remainingUs / 1000, this.#claim.ttlMs));
  }

  #repeat(): void {
    const { clock, timers, random } = this.#client.runtime;
    const pauses = { firstMs: FIRST_RETRY_MS, longestMs: this.#untilMs };
    this.#backoff ??= new Backoff(random, pauses);
    const pauseMs = this.#backoff.nextMs();
    if (clock.exactMs() + pauseMs >= this.#untilMs) return this.#listener?.onConfirmed(null);
    timers.after(pauseMs, () => {
      if (this.#isWanted) this.send();
    });
  }

  get #isWanted(): boolean {
    return this.#believed ? this.#client.grants.isLive(this.#believed) : !this.#isCancelled;
  }
}
