/**
 * One session with the store, shared by the entries of this process with the same ttl.
 *
 * The deadline of a session counts from the moment at which its last *proven* keep-alive was sent,
 * and is the deadline of all its grants. A session keeps itself alive while entries are in it, and
 * for one more ttl, so that the next acquire finds it open. A dedicated session keeps itself alive
 * only while its one owner waits; once that owner holds, it renews the session itself. No renewal
 * is sent after the deadline: then the session is over, with all its entries, and new acquires open
 * another one.
 */
import type { LossReason } from "../../errors/index.js";
import { marginMs } from "../../rules/margin.js";
import { renewAfterMs, repeatAfterMs, retryAfterMs } from "../../rules/renewal-pace.js";
import type { Runtime } from "../../time/runtime.js";
import type { Timer } from "../../time/timers.js";
import type { OwnEntry, Proof, StoreSession } from "./sequencer.js";

/** A renewal is answered by the last proof while that is younger than this part of the ttl. */
const FRESH_PART = 6;
/** The time limit of one proof. */
const MAX_CALL_MS = 5_000;
const END_MS = 1_000;

/** The part of this process that an entry in a session belongs to. */
export interface EntryOwner {
  /** The session ended without our doing, and the entry with it. */
  onSessionLost(entry: OwnEntry, session: Session, reason: LossReason): void;
  /** The session was proven, and the entry was not in the store any more. */
  onMissing(entry: OwnEntry): void;
}

export interface SessionOptions {
  readonly ttlMs: number;
  readonly isDedicated: boolean;
  /** When the request was sent that opened or proved the session. */
  readonly sentMs: number;
}

/** A request for a proof. */
class Question {
  readonly sentMs: number;
  /** Until then, further renewals join this request instead of sending another. */
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
  /** In the order in which they were sent. */
  #unanswered: Question[] = [];
  #timer: Timer | undefined;
  #renewsItself = true;
  #isOver = false;
  #isLost = false;
  #isRetired = false;

  /** `onOver`: the session is no longer kept, for whatever reason. */
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

  /** The session is over without our doing. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** Whether new entries may join. */
  get isOpen(): boolean {
    return !this.#isOver && !this.#isRetired && this.storeSession.takesEntries;
  }

  /** Whether an entry that joins now gets most of a ttl. */
  get isFresh(): boolean {
    return this.ageMs < this.ttlMs / 2;
  }

  /** Also gives an entry that is in the session to another owner. */
  add(entry: OwnEntry, owner: EntryOwner): void {
    this.#owners.set(entry, owner);
  }

  /** The entry is gone, was never made, or is in another session now. */
  remove(entry: OwnEntry): void {
    if (!this.#owners.delete(entry)) return;
    this.#usedMs = this.#runtime.clock.nowMs();
    if (this.#owners.size === 0 && (this.isDedicated || !this.isOpen)) void this.close();
  }

  /** How long ago the request for the last proof was sent. */
  get ageMs(): number {
    return this.#runtime.clock.nowMs() - this.#sentMs;
  }

  /** The owner of a dedicated session holds now, and decides whether to renew. */
  hand(): void {
    if (this.isDedicated) this.#renewsItself = false;
  }

  /** Takes no new entries, and ends with the last one that it has. */
  retire(): void {
    this.#isRetired = true;
    if (this.#owners.size === 0) void this.close();
  }

  /** Renews, unless a fresh proof is at hand; a throw means "unknown". */
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

  /** The store answered that the session is gone. */
  endedByStore(): void {
    this.#end("session_ended");
  }

  /** Leaves the session to the process that resumes it. */
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

  /** A session that is over here, as after its deadline, may live on in the store. */
  async endInStore(): Promise<void> {
    // When the store cannot be told, the session ends by its ttl.
    await this.storeSession.end(END_MS).catch(() => {});
  }

  /** Sends a request for a proof, also beside earlier ones that have no answer yet. */
  #ask(sentMs: number): Promise<Proof> {
    const restMs = this.#deadlineMs - sentMs;
    const repeatMs = repeatAfterMs(restMs, this.ttlMs);
    const question = new Question(sentMs, sentMs + repeatMs / 2);
    this.#unanswered.push(question);
    // The owner of a handed session repeats its renewal.
    if (this.#renewsItself) this.#arm(Math.min(repeatMs, restMs));
    this.#prove(sentMs).then(
      (proof) => this.#onProof(question, proof),
      (error) => this.#onFailure(question, error),
    );
    return question.answer;
  }

  /** A proof also answers the requests that were sent before its own. */
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
      // A later renewal may be answered by this proof, which does not name the entry again.
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
    // The lease of a handed session may have been detached, and live on in another process. Only
    // `SessionStore.release` knows, and ends such a session.
    if (this.#renewsItself) void this.endInStore();
  }
}
