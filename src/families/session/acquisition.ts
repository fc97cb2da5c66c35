/**
 * One attempt to acquire a lock, from the first request to a grant or the end of the wait.
 *
 * The attempt takes the grant only if the store listed the queue with the attempt's entry, and all
 * entries up to that one may hold the lock together. The deadline of the session is the deadline of
 * the grant. An attempt that ends without a grant removes its entry in a way that also stops late
 * copies of its requests from making the entry again.
 */

import type { Busy, Claim, HolderView, Wait } from "../../contract/store.js";
import { assert, present } from "../../errors/assert.js";
import { isFinal, StoreError } from "../../errors/index.js";
import { Backoff } from "../../time/backoff.js";
import type { Limits } from "../../time/limits.js";
import { pause } from "../../time/pause.js";
import { SilenceLimit, type SilenceListener } from "../../time/silence-limit.js";
import type { AttemptResult } from "../acquire-errors.js";
import type { EntryLines, LinePlace } from "./entry-lines.js";
import { entryText, heldText } from "./entry-text.js";
import type { GrantWatches } from "./grant-watches.js";
import type { LastFailure } from "./last-failure.js";
import type { Waiter } from "./queue.js";
import type { Queues } from "./queues.js";
import type {
  EnterCase,
  Entry,
  ListedMark,
  Listing,
  LockId,
  Moment,
  OwnEntry,
  Sequencer,
} from "./sequencer.js";
import type { EntryOwner, Session } from "./session.js";
import { SessionGrant } from "./session-grant.js";
import type { Sessions } from "./sessions.js";
import { hasLimits, holderCount, mustTell } from "./standing.js";
import { holderView, markView } from "./views.js";
import type { Withdrawals } from "./withdrawals.js";

/** The parts of the store that an acquisition uses. */
export interface Collaborators {
  readonly sequencer: Sequencer;
  readonly limits: Limits;
  readonly sessions: Sessions;
  readonly lines: EntryLines;
  readonly queues: Queues;
  readonly withdrawals: Withdrawals;
  readonly grants: GrantWatches;
  readonly lastFailure: LastFailure;
}

const CALL_MS = 1_500;
const RETRY_MS = { firstMs: 50, longestMs: 1_000 };
/** A dedicated session older than this fraction (1/20) of its ttl is renewed before the grant. */
const OLD_PART = 20;

export class Acquisition implements Waiter, EntryOwner, SilenceListener {
  readonly heartbeatMs: number = RETRY_MS.longestMs;
  readonly #claim: Claim;
  readonly #wait: Wait | null;
  readonly #with: Collaborators;
  /** The entry and its session; null until there is a session. */
  #known: { readonly entry: OwnEntry; readonly session: Session } | null = null;
  /** Null for a call that does not wait: its order among the other calls does not matter. */
  readonly #position: LinePlace | null;
  /** Set while a request to the store is unanswered. */
  #silence: SilenceLimit | null = null;
  #silentSinceMs = 0;
  /** Whether the queue had limits when this entry joined it. */
  #hadLimits = false;
  #lastError: unknown;
  /** Tokens revoked during this attempt; a listing may be older than the revocation. */
  #refused: Set<bigint> | null = null;
  #isSettled = false;
  #resolve: (result: AttemptResult<SessionGrant>) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(claim: Claim, wait: Wait | null, collaborators: Collaborators) {
    this.#claim = claim;
    this.#wait = wait;
    this.#with = collaborators;
    this.#position = wait ? collaborators.lines.join(claim) : null;
  }

  get patienceMs(): number {
    return this.#claim.storeTimeoutMs;
  }

  get entry(): OwnEntry {
    return this.#own.entry;
  }

  run(): Promise<AttemptResult<SessionGrant>> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#wait?.onEnd(() => this.giveUp());
      void this.#enter();
    });
  }

  /** Ends the attempt as busy, because the wait ended or the store is closing. */
  giveUp(): void {
    const { space, name } = this.#claim;
    const glance = this.#isSettled ? null : this.#with.queues.glance({ space, name });
    void this.#withdraw(async () => this.#busy((await glance) ?? null));
  }

  /** Remembers a token that this client revoked, in case it belongs to this attempt. */
  refuse(lock: LockId, token: bigint): void {
    const { space, name } = this.#claim;
    if (lock.space !== space || lock.name !== name) return;
    this.#refused ??= new Set();
    this.#refused.add(token);
  }

  onTurn(listing: Listing, index: number): void {
    void this.#take(listing, index, true);
  }

  onMissing(): void {
    this.#again("ended");
  }

  /** Ends the attempt as busy, because the work of the `once` is done. */
  onMark(mark: ListedMark): void {
    const busy: Busy = { type: "busy", holder: null, mark: markView(mark) };
    void this.#withdraw(() => busy);
  }

  onFailure(error: unknown): void {
    this.#fail(error);
  }

  onUnanswered(sentMs: number, error: unknown): void {
    this.#lastError = error;
    this.#with.lastFailure.note(error);
    this.#startSilenceLimit(sentMs);
  }

  onAnswered(): void {
    this.#with.lastFailure.clear();
    this.#endSilenceLimit();
  }

  onSilence(): void {
    // The store answered requests ahead of this one in the line, so it was not silent.
    const answeredMs = this.#position?.answeredMs ?? Number.NEGATIVE_INFINITY;
    this.#silence = null;
    if (answeredMs > this.#silentSinceMs) return this.#startSilenceLimit(answeredMs);
    const silentMs = Math.round(this.#claim.storeTimeoutMs);
    const why = this.#lastError instanceof Error ? ` ${this.#lastError.message}` : "";
    this.#fail(
      new StoreError(`The store was silent for ${silentMs} ms.${why}`, {
        outcome: "unknown",
        cause: this.#lastError,
      }),
    );
  }

  onSessionLost(): void {
    this.#again("ended");
  }

  async #enter(): Promise<void> {
    const { clock, timers, random } = this.#with.sequencer.runtime;
    this.#startSilenceLimit(clock.nowMs());
    const backoff = new Backoff(random, RETRY_MS);
    while (!this.#isSettled) {
      try {
        await this.#tryEnter();
        return this.#position?.leave();
      } catch (error) {
        this.#lastError = error;
        this.#with.lastFailure.note(error);
        if (isFinal(error)) return this.#fail(error);
        if (this.#isSettled) return;
        // The silence limit keeps the process alive until this attempt ends.
        await pause(timers, backoff.nextMs());
      }
    }
  }

  #endSilenceLimit(): void {
    this.#silence?.end();
    this.#silence = null;
  }

  #startSilenceLimit(sinceMs: number): void {
    if (this.#isSettled) return;
    const { sequencer, limits } = this.#with;
    const { storeTimeoutMs } = this.#claim;
    if (this.#silence) return;
    this.#silentSinceMs = sinceMs;
    this.#silence = new SilenceLimit(sequencer.runtime, limits, this, {
      limitMs: storeTimeoutMs,
      sinceMs,
    });
  }

  async #tryEnter(): Promise<void> {
    const { sessions } = this.#with;
    if (this.#position?.isFirst === false) await this.#position.turn();
    if (this.#isSettled) return;
    const session =
      this.#known?.session ??
      sessions.ready(this.#claim) ??
      (await sessions.for(this.#claim, CALL_MS));
    if (this.#isSettled) {
      if (session.isDedicated) void session.close();
      return;
    }
    this.#known ??= { entry: this.#makeEntry(session), session };
    const { entry } = this.#known;
    session.add(entry, this);
    const entering = await session.storeSession.enter(entry, this.#enterCase, CALL_MS);
    this.#position?.onAnswered(this.#with.sequencer.runtime.clock.nowMs());
    if (this.#isSettled) return;
    this.onAnswered();
    if (entering.type === "gone") {
      session.endedByStore();
      this.#again("ended");
    } else if (entering.type === "refused") this.#refuse(entering.listing, entering.mayStillArrive);
    else if (entering.type === "behind") this.#waitBehind(entering.moment);
    else this.#judge(entering.listing);
  }

  /** A shared entry always needs the listing, because of `mustTell`. */
  get #enterCase(): EnterCase {
    const { space, name, mode } = this.#claim;
    if (mode === "shared") return "any";
    if (this.#wait === null) return "if_empty";
    return this.#with.queues.at({ space, name }) ? "behind" : "any";
  }

  #makeEntry({ storeSession }: Session): OwnEntry {
    const { meta, ttlMs } = this.#claim;
    return storeSession.makeEntry(this.#claim, entryText({ meta, ttlMs, sinceMs: this.#wallMs }));
  }

  #judge(listing: Listing): void {
    const { entries, mark } = listing;
    // An earlier request made the entry before the mark was left, and its answer was lost.
    // rule: entry-found-again-heeds-the-mark
    if (mark) return this.onMark(mark);
    const index = entries.findIndex(({ id }) => id === this.entry.id);
    assert(index >= 0, "the listing of an enter shows the entry");
    if (index < holderCount(entries)) void this.#take(listing, index, false);
    else if (this.#wait) {
      this.#report(entries[0], index);
      // rule: limits-that-left-are-remembered
      this.#hadLimits = hasLimits(entries);
      this.#with.queues.of(this).add(this, listing);
    } else this.giveUp();
  }

  #waitBehind(moment: Moment): void {
    const queue = this.#with.queues.of(this);
    this.#report(queue.first, null);
    queue.addBehind(this, moment);
  }

  async #take(listing: Listing, index: number, hasWaited: boolean): Promise<void> {
    const { queues, sequencer, grants } = this.#with;
    const { entry, session } = this.#own;
    if (hasWaited) queues.remove(this);
    // The session may have aged during the wait. Renew it, so that the lease starts with its full
    // ttl even if it is never renewed later.
    if (session.isDedicated && session.ageMs > session.ttlMs / OLD_PART) {
      const isThere = await session.renew(true).then(
        (proof) => proof.type === "proven" && !proof.missing.has(entry),
        () => true,
      );
      if (this.#isSettled) return;
      if (!isThere) return this.#again("ended");
    }
    if (session.isOver || this.#refused?.has(entry.token)) return this.#again("ended");
    // rule: entry-granted-late-is-withdrawn
    if (sequencer.runtime.clock.exactMs() >= session.deadlineMs) return this.#again("late");
    this.#isSettled = true;
    this.onAnswered();
    session.hand();
    const grant = new SessionGrant(entry, session, listing.moment);
    grants.take(grant);
    this.#resolve(grant);
    if (hasWaited && mustTell(listing.entries, index, this.#hadLimits)) {
      // If this fails, the waiters behind notice at their next periodic listing.
      // rule: holder-tells-those-behind
      session.storeSession
        .write(entry, heldText(entry.text, this.#wallMs), CALL_MS)
        .catch(() => {});
    }
  }

  #refuse(listing: Listing, mayStillArrive: boolean): void {
    const busy = this.#busy(listing);
    if (mayStillArrive) return void this.#withdraw(() => busy);
    const { entry, session } = this.#own;
    session.remove(entry);
    this.#settle();
    this.#resolve(busy);
  }

  #again(reason: "late" | "ended"): void {
    void this.#withdraw(() => ({ type: "again", reason }));
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return;
    void this.#withdraw(() => null);
    this.#reject(error);
  }

  async #withdraw(
    resultOf: () => AttemptResult<SessionGrant> | null | Promise<Busy>,
  ): Promise<void> {
    if (this.#isSettled) return;
    this.#settle();
    if (this.#known) {
      const { entry, session } = this.#known;
      entry.isWithdrawn = true;
      // rule: unwanted-entry-is-withdrawn
      await this.#with.withdrawals.withdraw(entry, session);
    }
    const result = await resultOf();
    if (result) this.#resolve(result);
  }

  #settle(): void {
    this.#isSettled = true;
    this.#endSilenceLimit();
    this.#position?.leave();
    if (this.#known) this.#with.queues.remove(this);
  }

  #busy(listing: Listing | null): Busy {
    // The listing may still contain our own entry.
    const first = listing?.entries.find(({ id }) => id !== this.#known?.entry.id);
    const holder = listing ? this.#report(first, null) : null;
    return { type: "busy", holder, mark: listing?.mark ? markView(listing.mark) : null };
  }

  /** Reports to the waiting caller which holder blocks it. */
  #report(first: Entry | null | undefined, ahead: number | null): HolderView | null {
    const holder = first ? holderView(first, this.#wallMs) : null;
    this.#wait?.report(holder, ahead);
    return holder;
  }

  get #own(): { readonly entry: OwnEntry; readonly session: Session } {
    return present(this.#known, "an entry is made before it is judged");
  }

  get #wallMs(): number {
    return Math.round(this.#with.sequencer.runtime.clock.wallUs() / 1000);
  }
}
