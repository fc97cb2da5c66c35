import type { Confirm, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import type { ArbiterGrant } from "./arbiter-grant.js";
import type { Answer } from "./channel.js";
import type { Surroundings } from "./surroundings.js";

const FIRST_RETRY_MS = 20;

/** Whoever was handed a grant. */
export interface OfferTaker {
  readonly key: string;
  readonly owner: string;
  readonly ttlMs: number;
  readonly isSettled: boolean;
  /** Null when it is over already. */
  accept(granted: { token: number; span: number }, deadlineMs: number): ArbiterGrant | null;
  /** The offer window is over, and nobody knows whether the grant was confirmed in it. */
  onUnconfirmed(token: number): void;
}

/**
 * The confirm of a handed-off grant: on its way before anybody hears of the grant, repeated until
 * it is answered or the offer window is over. Until then a grant that is believed is believed only
 * for the window; one that is not, waits for the answer.
 */
export class Confirmation {
  readonly #pushed: PushedGrant;
  readonly #claimant: OfferTaker;
  readonly #around: Surroundings;
  readonly #command: Confirm;
  readonly #first: Promise<Answer<Confirm>>;

  constructor(pushed: PushedGrant, claimant: OfferTaker, around: Surroundings) {
    const { key, owner } = claimant;
    this.#pushed = pushed;
    this.#claimant = claimant;
    this.#around = around;
    this.#command = { type: "confirm", key, owner };
    // rule: confirm-is-sent-at-once
    this.#first = around.channel.sendNow(this.#command);
  }

  async follow(believed: ArbiterGrant | null, untilMs: number): Promise<void> {
    const { port, channel, isLive } = this.#around;
    let answer: Answer<Confirm> | null = null;
    let next = this.#first;
    for (let pauseMs = FIRST_RETRY_MS; !answer; pauseMs *= 2) {
      answer = await next.catch(() => null);
      if (answer || port.clock.exactMs() + pauseMs >= untilMs) break;
      await new Promise<void>((resume) => port.timers.after(pauseMs, resume));
      if (believed ? !isLive(believed) : this.#claimant.isSettled) return;
      next = channel.sendNow(this.#command);
    }
    if (believed) return this.#onBelieved(believed, answer);
    // rule: unproven-handoff-waits-for-its-confirm
    if (!this.#claimant.isSettled) this.#onAwaited(answer);
  }

  #onBelieved(grant: ArbiterGrant, answer: Answer<Confirm> | null): void {
    // Without an answer, belief ends with the claim.
    if (!answer) return;
    const { reply } = answer;
    const { onLost } = this.#around;
    if (reply.type !== "renewed") onLost(grant, reply.reason, reply.detail);
    else if (reply.token !== this.#pushed.token) onLost(grant, "replaced", "");
    else grant.extend(this.#deadlineOf(answer.sentMs, reply.remainingUs));
  }

  #onAwaited(answer: Answer<Confirm> | null): void {
    if (answer?.reply.type !== "renewed") return this.#claimant.onUnconfirmed(this.#pushed.token);
    const { token, span, remainingUs } = answer.reply;
    this.#claimant.accept({ token, span }, this.#deadlineOf(answer.sentMs, remainingUs));
  }

  #deadlineOf(sentMs: number, remainingUs: number): number {
    return deadlineOf(sentMs, remainingUs / 1000, this.#claimant.ttlMs);
  }
}
