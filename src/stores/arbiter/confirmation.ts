import type { Confirm, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import type { Claim } from "../../store.js";
import { Backoff } from "../../time/backoff.js";
import { pause } from "../../time/pause.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { ArbiterGrant } from "./arbiter-grant.js";
import type { Answer } from "./channel.js";

const FIRST_RETRY_MS = 20;

/** A grant of the store, and until when this client may believe in it. */
export interface Believable {
  readonly token: number;
  readonly span: number;
  readonly deadlineMs: number;
}

/**
 * The confirm of an offer, repeated until it is answered or the offer window is over. Its first
 * request is sent before any caller hears of the grant. A grant that is believed already is
 * believed for the offer window only, until the answer extends or ends it; a grant that is not
 * believed waits for the answer.
 */
export class Confirmation {
  readonly #pushed: PushedGrant;
  readonly #claim: Claim;
  readonly #client: ArbiterClient;
  readonly #command: Confirm;
  #answer: Promise<Answer<Confirm> | null> = Promise.resolve(null);
  #believed: ArbiterGrant | null = null;
  #isCancelled = false;

  constructor(key: string, claim: Claim, pushed: PushedGrant, client: ArbiterClient) {
    this.#pushed = pushed;
    this.#claim = claim;
    this.#client = client;
    this.#command = { type: "confirm", key, owner: claim.owner };
  }

  get token(): number {
    return this.#pushed.token;
  }

  send(): void {
    // rule: confirm-is-sent-at-once
    const answer = this.#client.channel.sendNow(this.#command);
    this.#answer = Promise.resolve(answer).catch(() => null);
  }

  /** Its acquisition has ended: the confirm is repeated only for a grant that is believed. */
  cancel(): void {
    this.#isCancelled = true;
  }

  /** Extends a grant that is believed already, or ends it. No answer: its belief runs out. */
  async extend(grant: ArbiterGrant): Promise<void> {
    this.#believed = grant;
    const answer = await this.#answerUntil(grant.deadlineMs);
    if (!answer) return;
    const { reply } = answer;
    const { grants } = this.#client;
    if (reply.type !== "renewed") grants.lose(grant, reply.reason, reply.detail);
    else if (reply.token !== this.token) grants.lose(grant, "replaced", "");
    else grant.extend(this.#deadlineOf(answer, reply.remainingUs));
  }

  /** The grant that the store confirms; null where it does not, or nothing is known in time. */
  async result(untilMs: number): Promise<Believable | null> {
    const answer = await this.#answerUntil(untilMs);
    if (answer?.reply.type !== "renewed") return null;
    const { token, span, remainingUs } = answer.reply;
    return { token, span, deadlineMs: this.#deadlineOf(answer, remainingUs) };
  }

  async #answerUntil(untilMs: number): Promise<Answer<Confirm> | null> {
    const { clock, timers, random } = this.#client.port;
    const backoff = new Backoff(random, { firstMs: FIRST_RETRY_MS, longestMs: untilMs });
    for (;;) {
      const answer = await this.#answer;
      if (answer) return answer;
      const pauseMs = backoff.nextMs();
      if (clock.exactMs() + pauseMs >= untilMs) return null;
      await pause(timers, pauseMs);
      if (!this.#isWanted) return null;
      this.send();
    }
  }

  get #isWanted(): boolean {
    return this.#believed ? this.#client.grants.isLive(this.#believed) : !this.#isCancelled;
  }

  #deadlineOf({ sentMs }: Answer<Confirm>, remainingUs: number): number {
    return deadlineOf(sentMs, remainingUs / 1000, this.#claim.ttlMs);
  }
}
