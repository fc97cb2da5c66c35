/**
 * One session with the store, shared by the entries of this process with the same ttl.
 *
 * Its deadline counts from the moment its last *proven* keep-alive was sent; all its grants have
 * this deadline. It keeps itself alive while entries are in it, and for one more ttl, so that the
 * next acquire finds it open; a session `alone` does so only while its one owner waits, and is then
 * renewed when its owner asks for it. A renewal is never sent after the deadline: then the session
 * is over, with everything in it, and a new one is opened for new acquires.
 */
import type { LossReason } from "../../errors.js";
import { marginMs } from "../../rules/margin.js";
import { renewAfterMs, repeatAfterMs, retryAfterMs } from "../../rules/renewal-pace.js";
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import type { OwnEntry, Proof, SessionLink } from "./sequencer.js";

/** A part of the ttl: a proof that is no older is fresh. */
const FRESH_PART = 6;
/** How long the store may take for one part of a proof. */
const MOST_CALL_MS = 5_000;
const END_MS = 1_000;

export interface SessionEvents {
  /** It ended without our doing, and everything in it with it. */
  onLost(reason: LossReason): void;
  /** It is no longer kept, for whatever reason. */
  onOver(): void;
}

/** A proof that the store was asked for. */
class Question {
  readonly sentMs: number;
  /** Until then it is joined, instead of asking again. */
  readonly joinableMs: number;
  readonly answer: Promise<Proof>;
  resolve: (proof: Proof) => void = () => {};
  reject: (error: unknown) => void = () => {};

  constructor(sentMs: number, joinableMs: number) {
    this.sentMs = sentMs;
    this.joinableMs = joinableMs;
    this.answer = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

export class Session {
  readonly link: SessionLink;
  readonly ttlMs: number;
  readonly isAlone: boolean;
  readonly entries: Set<OwnEntry> = new Set();
  readonly #port: Port;
  readonly #events: SessionEvents;
  #deadlineMs: number;
  #sentMs: number;
  #usedMs: number;
  /** In the order in which they were sent. */
  #unanswered: Question[] = [];
  #timer: Timer | undefined;
  #renewsItself = true;
  #isOver = false;
  #isLost = false;
  #isRetired = false;

  constructor(
    link: SessionLink,
    options: { readonly ttlMs: number; readonly isAlone: boolean; readonly sentMs: number },
    port: Port,
    events: SessionEvents,
  ) {
    this.link = link;
    this.ttlMs = options.ttlMs;
    this.isAlone = options.isAlone;
    this.#port = port;
    this.#events = events;
    this.#sentMs = options.sentMs;
    this.#usedMs = options.sentMs;
    this.#deadlineMs = options.sentMs + this.ttlMs - marginMs(this.ttlMs);
    link.onSpoiled(() => this.retire());
    this.#arm(renewAfterMs(this.ttlMs));
  }

  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It is over without our doing. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether new entries may join. */
  get isOpen(): boolean {
    return !this.#isOver && !this.#isRetired;
  }

  /** Whether its last proof is as young as it should be: what joins now gets most of a ttl. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs / 2;
  }

  add(entry: OwnEntry): void {
    this.entries.add(entry);
  }

  remove(entry: OwnEntry): void {
    if (!this.entries.delete(entry)) return;
    this.link.forget(entry);
    this.#usedMs = this.#port.clock.nowMs();
    if (this.entries.size === 0 && (this.isAlone || this.#isRetired)) void this.close();
  }

  /** How long ago its last proof was sent. */
  get ageMs(): number {
    return this.#port.clock.nowMs() - this.#sentMs;
  }

  /** Its owner holds now, and decides for itself whether to renew. */
  hand(): void {
    if (this.isAlone) this.#renewsItself = false;
  }

  /** Takes no new entries, and ends with the last it has. */
  retire(): void {
    this.#isRetired = true;
    if (this.entries.size === 0) void this.close();
  }

  /** Renews, unless a fresh proof is at hand; a throw means "unknown". */
  async renew(force = false): Promise<Proof> {
    const nowMs = this.#port.clock.exactMs();
    if (this.#isOver) return { type: "gone" };
    if (nowMs >= this.#deadlineMs) {
      this.#end("expired");
      return { type: "gone" };
    }
    if (!force && !this.isAlone && nowMs - this.#sentMs < this.ttlMs / FRESH_PART) {
      return { type: "proven", ttlMs: this.ttlMs, missing: new Set(), at: 0n };
    }
    const latest = this.#unanswered.at(-1);
    return latest && nowMs < latest.joinableMs ? latest.answer : this.#ask(nowMs);
  }

  /** The store said that it is gone. */
  endedByStore(): void {
    this.#end("session_ended");
  }

  /** Leaves it to whoever resumes it. */
  abandon(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#events.onOver();
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.abandon();
    await this.endInStore();
  }

  /** The store may count it as alive when it is over here, as after its deadline. */
  async endInStore(): Promise<void> {
    // What cannot be told ends by its ttl.
    await this.link.end(END_MS).catch(() => {});
  }

  /** Where an earlier question has no answer yet, this one is asked beside it. */
  #ask(sentMs: number): Promise<Proof> {
    const restMs = this.#deadlineMs - sentMs;
    const repeatMs = repeatAfterMs(restMs, this.ttlMs);
    const question = new Question(sentMs, sentMs + repeatMs / 2);
    this.#unanswered.push(question);
    // Its owner repeats the renewal of a handed session.
    if (this.#renewsItself) this.#arm(Math.min(repeatMs, restMs));
    this.#prove(sentMs).then(
      (proof) => this.#onProof(question, proof),
      (error) => this.#onFailure(question, error),
    );
    return question.answer;
  }

  /** It also answers the questions that were asked before. */
  #onProof({ sentMs }: Question, proof: Proof): void {
    const answered = this.#unanswered.filter((one) => one.sentMs <= sentMs);
    this.#unanswered = this.#unanswered.filter((one) => one.sentMs > sentMs);
    for (const question of answered) question.resolve(proof);
  }

  #onFailure(question: Question, error: unknown): void {
    const isLatest = this.#unanswered.at(-1) === question;
    this.#unanswered = this.#unanswered.filter((one) => one !== question);
    question.reject(error);
    if (!isLatest || !this.#renewsItself) return;
    const restMs = this.#deadlineMs - this.#port.clock.nowMs();
    this.#arm(Math.min(retryAfterMs(this.ttlMs), restMs));
  }

  async #prove(sentMs: number): Promise<Proof> {
    const callMs = Math.min(this.#deadlineMs - sentMs, MOST_CALL_MS);
    const proof = await this.link.prove([...this.entries], callMs);
    if (proof.type === "gone") this.#end("session_ended");
    else if (!this.#isOver) {
      const ttlMs = Math.min(this.ttlMs, proof.ttlMs);
      this.#sentMs = Math.max(this.#sentMs, sentMs);
      // rule: session-deadline-counts-from-sending
      this.#deadlineMs = Math.max(this.#deadlineMs, sentMs + ttlMs - marginMs(ttlMs));
      this.#arm(this.#sentMs + renewAfterMs(this.ttlMs) - this.#port.clock.nowMs());
    }
    return proof;
  }

  #arm(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#isOver) return;
    this.#timer = this.#port.timers.after(Math.max(1, delayMs), () => this.#tick());
  }

  #tick(): void {
    const nowMs = this.#port.clock.exactMs();
    if (nowMs >= this.#deadlineMs) return this.#end("expired");
    if (!this.#renewsItself) return this.#arm(this.#deadlineMs - nowMs);
    if (this.entries.size === 0 && nowMs - this.#usedMs >= this.ttlMs) return void this.close();
    this.renew(true).catch(() => {});
  }

  #end(reason: LossReason): void {
    if (this.#isOver) return;
    this.#isLost = true;
    this.abandon();
    this.#events.onLost(reason);
    // The lease of a handed session may have been detached and live on in another process, which
    // only its owner knows: see `SequencerStore.release`.
    if (this.#renewsItself) void this.endInStore();
  }
}
