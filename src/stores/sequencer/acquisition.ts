/**
 * One attempt of an acquisition, from the first request to a grant or the end of the wait.
 *
 * The attempt believes that it holds in one case only: the store listed the queue, with its own
 * entry, and all entries up to that one may hold together. Its session says until when. Unless the
 * attempt ends with a grant, its entry is removed, so that no late copy of a request can make the
 * entry again.
 */
import { assert, present } from "../../assert.js";
import { isFinal, StoreError } from "../../errors.js";
import type { Busy, Claim, HolderView, Wait } from "../../store.js";
import { Backoff } from "../../time/backoff.js";
import type { Limits } from "../../time/limits.js";
import { pause } from "../../time/pause.js";
import { SilenceLimit, type SilenceListener } from "../../time/silence-limit.js";
import type { AttemptResult } from "../attempts.js";
import { entryText, heldText } from "./entry-text.js";
import type { GrantWatches } from "./grant-watches.js";
import type { Waiter } from "./queue.js";
import type { Queues } from "./queues.js";
import type { Leaving, ListedMark, Listing, OwnEntry, Sequencer } from "./sequencer.js";
import { SequencerGrant } from "./sequencer-grant.js";
import type { EntryOwner, Session } from "./session.js";
import type { Sessions } from "./sessions.js";
import { hasLimits, holderCount, mustTell } from "./standing.js";
import { holderView, markView } from "./views.js";
import type { Withdrawals } from "./withdrawals.js";

/** The parts of the store that an acquisition works with. */
export interface Collaborators {
  readonly sequencer: Sequencer;
  readonly limits: Limits;
  readonly sessions: Sessions;
  readonly queues: Queues;
  readonly withdrawals: Withdrawals;
  readonly grants: GrantWatches;
}

const CALL_MS = 1_500;
const GLANCE_MS = 1_000;
const RETRY_MS = { firstMs: 50, longestMs: 1_000 };
/** A session `alone` that is older than this part of its ttl is renewed before it is granted. */
const OLD_PART = 20;

export class Acquisition implements Waiter, EntryOwner, SilenceListener {
  readonly touchMs: number = RETRY_MS.longestMs;
  readonly #claim: Claim;
  readonly #wait: Wait | null;
  readonly #with: Collaborators;
  /** The entry and its session, as soon as both are known. */
  #known: { readonly entry: OwnEntry; readonly session: Session } | null = null;
  /** Runs while a request to the store has no answer. */
  #silence: SilenceLimit | null = null;
  /** Whether the queue had limits when this entry came. */
  #hadLimits = false;
  #lastError: unknown;
  #isSettled = false;
  #resolve: (result: AttemptResult<SequencerGrant>) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(claim: Claim, wait: Wait | null, collaborators: Collaborators) {
    this.#claim = claim;
    this.#wait = wait;
    this.#with = collaborators;
  }

  get patienceMs(): number {
    return this.#claim.storeTimeoutMs;
  }

  get entry(): OwnEntry {
    return this.#own.entry;
  }

  run(): Promise<AttemptResult<SequencerGrant>> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#wait?.onEnd(() => this.giveUp());
      void this.#enter();
    });
  }

  /** The wait is over, or the store closes. */
  giveUp(): void {
    void this.#withdraw(true, (left) => this.#busy(left?.listing ?? null));
  }

  onTurn(listing: Listing, index: number): void {
    void this.#take(listing, index, true);
  }

  onMissing(): void {
    this.#again("ended");
  }

  /** The work of a `once` is done. */
  onMark(mark: ListedMark): void {
    const busy: Busy = { type: "busy", holder: null, mark: markView(mark) };
    void this.#withdraw(false, () => busy);
  }

  onFailure(error: unknown): void {
    this.#fail(error);
  }

  onUnanswered(sentMs: number, error: unknown): void {
    this.#lastError = error;
    this.#startSilenceLimit(sentMs);
  }

  onAnswered(): void {
    this.#silence?.end();
    this.#silence = null;
  }

  onSilence(): void {
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
    const { clock, timers, random } = this.#with.sequencer.port;
    this.#startSilenceLimit(clock.nowMs());
    const backoff = new Backoff(random, RETRY_MS);
    while (!this.#isSettled) {
      try {
        return await this.#tryEnter();
      } catch (error) {
        this.#lastError = error;
        if (isFinal(error)) return this.#fail(error);
        if (this.#isSettled) return;
        // The limit of silence keeps the process alive, and ends with this attempt.
        await pause(timers, backoff.nextMs());
      }
    }
  }

  #startSilenceLimit(sinceMs: number): void {
    if (this.#isSettled) return;
    const { sequencer, limits } = this.#with;
    const { storeTimeoutMs } = this.#claim;
    this.#silence ??= new SilenceLimit(sequencer.port, limits, this, {
      limitMs: storeTimeoutMs,
      sinceMs,
    });
  }

  async #tryEnter(): Promise<void> {
    const { sessions } = this.#with;
    const session =
      this.#known?.session ??
      sessions.ready(this.#claim) ??
      (await sessions.for(this.#claim, CALL_MS));
    if (this.#isSettled) {
      if (session.isAlone) void session.close();
      return;
    }
    this.#known ??= { entry: this.#makeEntry(session), session };
    const { entry } = this.#known;
    session.add(entry, this);
    const ifAlone = this.#wait === null && this.#claim.mode === "exclusive";
    const entering = await session.link.enter(entry, ifAlone, CALL_MS);
    if (this.#isSettled) return;
    this.onAnswered();
    if (entering.type === "gone") {
      session.endedByStore();
      this.#again("ended");
    } else if (entering.type === "refused") this.#refuse(entering.listing, entering.mayAppear);
    else this.#judge(entering.listing);
  }

  #makeEntry({ link }: Session): OwnEntry {
    const { meta, ttlMs } = this.#claim;
    return link.makeEntry(this.#claim, entryText({ meta, ttlMs, sinceMs: this.#wallMs }));
  }

  #judge(listing: Listing): void {
    const { entries } = listing;
    const index = entries.findIndex(({ id }) => id === this.entry.id);
    assert(index >= 0, "the listing of an enter shows the entry");
    if (index < holderCount(entries)) void this.#take(listing, index, false);
    else if (this.#wait) {
      this.#report(listing, index);
      // rule: limits-that-left-are-remembered
      this.#hadLimits = hasLimits(entries);
      this.#with.queues.add(this, listing);
    } else this.giveUp();
  }

  async #take(listing: Listing, index: number, hasWaited: boolean): Promise<void> {
    const { queues, sequencer, grants } = this.#with;
    const { entry, session } = this.#own;
    if (hasWaited) queues.remove(this);
    // A lease that is never renewed begins with all of its ttl, however long the wait took.
    if (session.isAlone && session.ageMs > session.ttlMs / OLD_PART) {
      const isThere = await session.renew(true).then(
        (proof) => proof.type === "proven" && !proof.missing.has(entry),
        () => true,
      );
      if (this.#isSettled) return;
      if (!isThere) return this.#again("ended");
    }
    if (session.isOver) return this.#again("ended");
    // rule: entry-granted-late-is-withdrawn
    if (sequencer.port.clock.exactMs() >= session.deadlineMs) return this.#again("late");
    this.#isSettled = true;
    this.onAnswered();
    session.hand();
    const grant = new SequencerGrant(entry, session, listing.moment);
    grants.take(grant);
    this.#resolve(grant);
    if (hasWaited && mustTell(listing.entries, index, this.#hadLimits)) {
      // When this fails, the entries behind list the queue by themselves before long.
      // rule: holder-tells-those-behind
      session.link.write(entry, heldText(entry.text, this.#wallMs), CALL_MS).catch(() => {});
    }
  }

  #refuse(listing: Listing, mayAppear: boolean): void {
    const busy = this.#busy(listing);
    if (mayAppear) return void this.#withdraw(false, () => busy);
    const { entry, session } = this.#own;
    session.remove(entry);
    this.#settle();
    this.#resolve(busy);
  }

  #again(reason: "late" | "ended"): void {
    void this.#withdraw(false, () => ({ type: "again", reason }));
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return;
    void this.#withdraw(false, () => null);
    this.#reject(error);
  }

  async #withdraw(
    isAsked: boolean,
    resultOf: (left: Leaving | null) => AttemptResult<SequencerGrant> | null,
  ): Promise<void> {
    if (this.#isSettled) return;
    this.#settle();
    let left: Leaving | null = null;
    if (this.#known) {
      const { entry, session } = this.#known;
      entry.isWithdrawn = true;
      // rule: unwanted-entry-is-withdrawn
      left = await this.#with.withdrawals.withdraw(entry, session, isAsked);
    } else if (isAsked) {
      left = { wasThere: false, listing: await this.#glance() };
    }
    const result = resultOf(left);
    if (result) this.#resolve(result);
  }

  #settle(): void {
    this.#isSettled = true;
    this.onAnswered();
    if (this.#known) this.#with.queues.remove(this);
  }

  /** The queue, if the store answers soon. */
  async #glance(): Promise<Listing | null> {
    const { space, name } = this.#claim;
    return this.#with.sequencer.list({ space, name }, "texts", GLANCE_MS).catch(() => null);
  }

  #busy(listing: Listing | null): Busy {
    const holder = listing ? this.#report(listing, null) : null;
    return { type: "busy", holder, mark: listing?.mark ? markView(listing.mark) : null };
  }

  /** Tells the caller of the wait which holder is in the way. */
  #report({ entries: [first] }: Listing, ahead: number | null): HolderView | null {
    const holder = first ? holderView(first, this.#wallMs) : null;
    this.#wait?.report(holder, ahead);
    return holder;
  }

  get #own(): { readonly entry: OwnEntry; readonly session: Session } {
    return present(this.#known, "an entry is made before it is judged");
  }

  get #wallMs(): number {
    return Math.round(this.#with.sequencer.port.clock.wallUs() / 1000);
  }
}
