/**
 * One session with the store, shared by the entries of this process with the same ttl.
 *
 * The deadline of a session is measured from when its last confirmed keep-alive was sent, and is
 * the deadline of all its grants. A session renews itself while it has entries and for one more
 * ttl, so that the next acquire finds it open. A dedicated session renews itself only while its
 * owner waits; once the owner holds the lock, the owner renews the session. After the deadline no
 * renewal is sent: the session and all its entries have ended, and new acquires open another one.
 */
import type { LossReason } from "../../errors/index.js";
import { marginMs } from "../../rules/margin.js";
import { renewAfterMs, repeatAfterMs, retryAfterMs } from "../../rules/renewal-pace.js";
import type { Runtime } from "../../time/runtime.js";
import type { Timer } from "../../time/timers.js";
import type { OwnEntry, Proof, StoreSession } from "./sequencer.js";

/** A renewal reuses the last proof if that is younger than this fraction (1/6) of the ttl. */
const FRESH_PART = 6;
/** The time limit of one proof. */
const MAX_CALL_MS = 5_000;
const END_MS = 1_000;

/** Whoever in this process owns an entry of a session. */
export interface EntryOwner {
  /** The session ended, and the entry with it, although this process did not end it. */
  onSessionLost(entry: OwnEntry, session: Session, reason: LossReason): void;
  /** The session is alive, but the entry is gone from the store. */
  onMissing(entry: OwnEntry): void;
}

export interface SessionOptions {
  readonly ttlMs: number;
  readonly isDedicated: boolean;
  /** When the request that opened or proved the session was sent. */
  readonly sentMs: number;
}

/** A pending request for a proof. */
class Question {
  readonly sentMs: number;
  /** Until then, other renewals wait for this answer instead of sending another request. */
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
  readonly storeSession: StoreSession;
  readonly ttlMs: number;
  readonly isDedicated: boolean;
  readonly #runtime: Runtime;
  readonly #onOver: (session: Session) => void;
  readonly #owners = new Map<OwnEntry, EntryOwner>();
  #deadlineMs: number;
  #sentMs: number;
  #usedMs: number;
  /** The pending requests, in the order in which they were sent. */
  #unanswered: Question[] = [];
  #timer: Timer | undefined;
  #renewsItself = true;
  #isOver = false;
  #isLost = false;
  #isRetired = false;

  /** `onOver` is called once, when the session is closed, lost or abandoned. */
  constructor(
    storeSession: StoreSession,
    options: SessionOptions,
    runtime: Runtime,
    onOver: (session: Session) => void,
  ) {
    this.storeSession = storeSession;
    this.ttlMs = options.ttlMs;
    this.isDedicated = options.isDedicated;
    this.#runtime = runtime;
    this.#onOver = onOver;
    this.#sentMs = options.sentMs;
    this.#usedMs = options.sentMs;
    this.#deadlineMs = options.sentMs + this.ttlMs - marginMs(this.ttlMs);
    this.#arm(renewAfterMs(this.ttlMs));
  }

  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether the session ended although this process did not end it. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether the session takes new entries. */
  get isOpen(): boolean {
    return !this.#isOver && !this.#isRetired && this.storeSession.takesEntries;
  }

  /** Whether at least half of the ttl is left. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs / 2;
  }

  /** Adds an entry, or changes the owner of one that is already in the session. */
  add(entry: OwnEntry, owner: EntryOwner): void {
    this.#owners.set(entry, owner);
  }

  /** Removes an entry that is gone, was never made, or has moved to another session. */
  remove(entry: OwnEntry): void {
    if (!this.#owners.delete(entry)) return;
    this.#usedMs = this.#runtime.clock.nowMs();
    if (this.#owners.size === 0 && (this.isDedicated || !this.isOpen)) void this.close();
  }

  /** The time since the request for the last proof was sent. */
  get ageMs(): number {
    return this.#runtime.clock.nowMs() - this.#sentMs;
  }

  /** Stops a dedicated session from renewing itself: its owner holds now and does that. */
  hand(): void {
    if (this.isDedicated) this.#renewsItself = false;
  }

  /** Takes no new entries from now on, and ends the session when its last entry leaves. */
  retire(): void {
    this.#isRetired = true;
    if (this.#owners.size === 0) void this.close();
  }

  /** Renews the session, unless its last proof is recent. An error means "unknown". */
  async renew(force = false): Promise<Proof> {
    const nowMs = this.#runtime.clock.exactMs();
    if (this.#isOver) return { type: "gone" };
    if (nowMs >= this.#deadlineMs) {
      this.#end("expired");
      return { type: "gone" };
    }
    if (!force && !this.isDedicated && nowMs - this.#sentMs < this.ttlMs / FRESH_PART) {
      return { type: "proven", ttlMs: this.ttlMs, missing: new Set() };
    }
    const latest = this.#unanswered.at(-1);
    return latest && nowMs < latest.joinableMs ? latest.answer : this.#ask(nowMs);
  }

  /** Ends the session here, because the store answered that it is gone. */
  endedByStore(): void {
    this.#end("session_ended");
  }

  /** Stops using the session without ending it in the store. */
  abandon(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#onOver(this);
  }

  async close(): Promise<void> {
    if (this.#isOver) return;
    this.abandon();
    await this.endInStore();
  }

  /** Ends the session in the store, where it may live on after its deadline here. */
  async endInStore(): Promise<void> {
    // If this fails, the session ends when its ttl runs out.
    await this.storeSession.end(END_MS).catch(() => {});
  }

  /** Sends a request for a proof, even if earlier ones are still unanswered. */
  #ask(sentMs: number): Promise<Proof> {
    const restMs = this.#deadlineMs - sentMs;
    const repeatMs = repeatAfterMs(restMs, this.ttlMs);
    const question = new Question(sentMs, sentMs + repeatMs / 2);
    this.#unanswered.push(question);
    // Otherwise the owner repeats the renewal.
    if (this.#renewsItself) this.#arm(Math.min(repeatMs, restMs));
    this.#prove(sentMs).then(
      (proof) => this.#onProof(question, proof),
      (error) => this.#onFailure(question, error),
    );
    return question.answer;
  }

  /** Resolves this request and all earlier ones, which the proof answers too. */
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
    const restMs = this.#deadlineMs - this.#runtime.clock.nowMs();
    this.#arm(Math.min(retryAfterMs(this.ttlMs), restMs));
  }

  async #prove(sentMs: number): Promise<Proof> {
    const callMs = Math.min(this.#deadlineMs - sentMs, MAX_CALL_MS);
    const proof = await this.storeSession.prove([...this.#owners.keys()], callMs);
    if (proof.type === "gone") this.#end("session_ended");
    else if (!this.#isOver) {
      const ttlMs = Math.min(this.ttlMs, proof.ttlMs);
      this.#sentMs = Math.max(this.#sentMs, sentMs);
      // rule: session-deadline-counts-from-sending
      this.#deadlineMs = Math.max(this.#deadlineMs, sentMs + ttlMs - marginMs(ttlMs));
      this.#arm(this.#sentMs + renewAfterMs(this.ttlMs) - this.#runtime.clock.nowMs());
      // Later renewals may reuse this proof, and would not report the missing entries again.
      // rule: missing-entry-is-told-at-once
      for (const entry of proof.missing) this.#owners.get(entry)?.onMissing(entry);
    }
    return proof;
  }

  #arm(delayMs: number): void {
    this.#timer?.cancel();
    if (this.#isOver) return;
    this.#timer = this.#runtime.timers.after(Math.max(1, delayMs), () => this.#tick());
  }

  #tick(): void {
    const nowMs = this.#runtime.clock.exactMs();
    if (nowMs >= this.#deadlineMs) return this.#end("expired");
    if (!this.#renewsItself) return this.#arm(this.#deadlineMs - nowMs);
    if (this.#owners.size === 0 && nowMs - this.#usedMs >= this.ttlMs) return void this.close();
    this.renew(true).catch(() => {});
  }

  #end(reason: LossReason): void {
    if (this.#isOver) return;
    this.#isLost = true;
    this.abandon();
    for (const [entry, owner] of [...this.#owners]) owner.onSessionLost(entry, this, reason);
    // The lease of a dedicated session may have been detached and live on in another process. Only
    // `SessionStore.release` knows, so it ends such a session.
    if (this.#renewsItself) void this.endInStore();
  }
}
