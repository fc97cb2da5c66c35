/**
 * One acquisition, from the first request to a grant or the end of the wait.
 *
 * It believes that it holds in one case only: the store listed the line, its own entry in it, and
 * the beginning of the line up to that entry is compatible. Until when, its session says. However
 * it ends but with a grant, its entry is withdrawn, and while a copy of the request that made it
 * may be under way, withdrawn so that the copy cannot make it again.
 */
import { StoreError } from "../../errors.js";
import type { Busy, Claim, HolderView, Wait } from "../../store.js";
import type { Limits } from "../../time/limits.js";
import type { Port } from "../../time/port.js";
import { SilenceLimit, type SilenceListener } from "../../time/silence-limit.js";
import type { Timer } from "../../time/timers.js";
import type { Line, Waiter } from "./line.js";
import type { Leaving, Listing, Mark, OwnEntry, Place } from "./sequencer.js";
import { SequencerGrant } from "./sequencer-grant.js";
import type { Session } from "./session.js";
import { hasLimits, holderCount, mustTell } from "./standing.js";
import { holderView, markView } from "./views.js";

/** `again`: its session ended, its entry was taken away, or the answer came too late. */
export type Outcome = SequencerGrant | Busy | { readonly type: "again"; readonly isLate: boolean };

export interface Surroundings {
  readonly port: Port;
  readonly limits: Limits;
  line(place: Place): Line;
  /** The same as `session`, where that needs no asking. */
  readySession(claim: Claim): Session | null;
  /** An open session for the claim, with most of its ttl before it; a throw means "unknown". */
  session(claim: Claim, limitMs: number): Promise<Session>;
  makeEntry(claim: Claim, session: Session): OwnEntry;
  /** Withdraws the entry, however long that takes; what is seen of the line, if it was soon. */
  withdraw(entry: OwnEntry, session: Session, isAsked: boolean): Promise<Leaving | null>;
  /** The line, if it is soon seen. */
  glance(place: Place): Promise<Listing | null>;
  onSettled(acquisition: Acquisition, grant: SequencerGrant | null): void;
}

const CALL_MS = 1_500;
const RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;
const OLD_PART = 20;

export class Acquisition implements Waiter, SilenceListener {
  readonly touchMs: number = LONGEST_RETRY_MS;
  readonly #claim: Claim;
  readonly #wait: Wait | null;
  readonly #around: Surroundings;
  #session: Session | null = null;
  #entry: OwnEntry | null = null;
  #line: Line | null = null;
  /** Runs while a question to the store has no answer. */
  #silence: SilenceLimit | null = null;
  /** Whether weights could stop an entry when this one came. */
  #hadLimits = false;
  #retry: Timer | undefined;
  #lastError: unknown;
  #isSettled = false;
  #resolve: (outcome: Outcome) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(claim: Claim, wait: Wait | null, around: Surroundings) {
    this.#claim = claim;
    this.#wait = wait;
    this.#around = around;
  }

  get entry(): OwnEntry {
    return this.#entry as OwnEntry;
  }

  get place(): Place {
    const { space, name } = this.#claim;
    return { space, name };
  }

  get session(): Session | null {
    return this.#session;
  }

  run(): Promise<Outcome> {
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
    this.#again(false);
  }

  /** A `once` that waited: the work is done. */
  onMark(mark: Mark): void {
    const busy: Busy = { type: "busy", holder: null, mark: markView(mark) };
    void this.#withdraw(false, () => busy);
  }

  onFailure(error: unknown): void {
    this.#fail(error);
  }

  onUnanswered(sentMs: number, error: unknown): void {
    this.#lastError = error;
    this.#startSilence(sentMs);
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

  onSessionEnd(): void {
    this.#again(false);
  }

  async #enter(): Promise<void> {
    const { clock, timers } = this.#around.port;
    this.#startSilence(clock.nowMs());
    for (let failures = 0; !this.#isSettled; ) {
      try {
        if (await this.#tryEnter(CALL_MS)) return;
      } catch (error) {
        failures += 1;
        this.#lastError = error;
        if (this.#isSettled) return;
        if (isFinal(error)) return this.#fail(error);
        const pauseMs = Math.min(RETRY_MS * failures, LONGEST_RETRY_MS);
        await new Promise<void>((go) => {
          this.#retry = timers.after(pauseMs, go, true);
        });
      }
    }
  }

  #startSilence(sinceMs: number): void {
    if (this.#isSettled) return;
    const { port, limits } = this.#around;
    const { storeTimeoutMs } = this.#claim;
    this.#silence ??= new SilenceLimit(port, limits, storeTimeoutMs, sinceMs, this);
  }

  /** True when nothing is left to ask. */
  async #tryEnter(limitMs: number): Promise<boolean> {
    const session =
      this.#session ??
      this.#around.readySession(this.#claim) ??
      (await this.#around.session(this.#claim, limitMs));
    if (this.#isSettled) {
      if (session.isAlone) void session.close();
      return true;
    }
    this.#session = session;
    this.#entry ??= this.#around.makeEntry(this.#claim, session);
    const entry = this.#entry;
    session.add(entry);
    const ifAlone = this.#wait === null && this.#claim.mode === "exclusive";
    let entering = await session.link.enter(entry, ifAlone, limitMs);
    // Others of longer names share the beginning of this line's keys: only the line itself counts.
    if (entering.type === "refused" && isFree(entering.listing) && !this.#isSettled) {
      entering = await session.link.enter(entry, false, limitMs);
    }
    if (this.#isSettled) return true;
    this.onAnswered();
    if (entering.type === "gone") {
      session.endedByStore();
      this.#again(false);
    } else if (entering.type === "refused") {
      this.#refuse(entering.listing);
    } else this.#judge(entering.listing);
    return true;
  }

  #judge(listing: Listing): void {
    const { entry } = this;
    const index = listing.entries.findIndex(({ id }) => id === entry.id);
    if (index < holderCount(listing.entries)) void this.#take(listing, index, false);
    else if (this.#wait) {
      this.#tell(listing, index);
      // rule: limits-that-left-are-remembered
      this.#hadLimits = hasLimits(listing.entries);
      this.#line = this.#around.line(entry.place);
      this.#line.add(this, listing);
    } else void this.#withdraw(true, (left) => this.#busy(left?.listing ?? null));
  }

  async #take(listing: Listing, index: number, hasWaited: boolean): Promise<void> {
    const { entry } = this;
    const session = this.#session as Session;
    this.#line?.remove(this);
    // A lease that nobody renews begins with all of its ttl, however long this took.
    if (session.isAlone && session.ageMs > session.ttlMs / OLD_PART) {
      const isThere = await session.renew(true).then(
        (proof) => proof.type === "proven" && !proof.missing.has(entry),
        () => true,
      );
      if (this.#isSettled) return;
      if (!isThere) return this.#again(false);
    }
    if (session.isOver) return this.#again(false);
    // rule: entry-granted-late-is-withdrawn
    if (this.#around.port.clock.exactMs() >= session.deadlineMs) return this.#again(true);
    this.#isSettled = true;
    this.onAnswered();
    session.hand();
    const grant = new SequencerGrant(entry, session);
    this.#around.onSettled(this, grant);
    this.#resolve(grant);
    if (hasWaited && mustTell(listing.entries, index, this.#hadLimits)) {
      // Should this fail, whoever waits for it looks by itself before long.
      // rule: holder-tells-those-behind
      session.link.markHeld(entry, CALL_MS).catch(() => {});
    }
  }

  /** Nothing was made; only a copy under way could still make it. */
  #refuse(listing: Listing): void {
    const busy = this.#busy(listing);
    if (this.entry.isDoubtful) void this.#withdraw(false, () => busy);
    else {
      this.#session?.remove(this.entry);
      this.#settle();
      this.#resolve(busy);
    }
  }

  #again(isLate: boolean): void {
    void this.#withdraw(false, () => ({ type: "again", isLate }));
  }

  #fail(error: unknown): void {
    if (this.#isSettled) return;
    void this.#withdraw(false, () => null);
    this.#reject(error);
  }

  async #withdraw(
    isAsked: boolean,
    outcome: (left: Leaving | null) => Outcome | null,
  ): Promise<void> {
    if (this.#isSettled) return;
    this.#settle();
    const [entry, session] = [this.#entry, this.#session];
    let left: Leaving | null = null;
    if (entry && session) {
      entry.isWithdrawn = true;
      // A request without an answer may still arrive.
      if (entry.order === 0n) entry.isDoubtful = true;
      // rule: unwanted-entry-is-withdrawn
      left = await this.#around.withdraw(entry, session, isAsked);
    } else if (isAsked) {
      left = { wasThere: false, listing: await this.#around.glance(this.place) };
    }
    const result = outcome(left);
    if (result) this.#resolve(result);
  }

  #settle(): void {
    this.#isSettled = true;
    this.#retry?.cancel();
    this.onAnswered();
    this.#line?.remove(this);
    this.#around.onSettled(this, null);
  }

  #busy(listing: Listing | null): Busy {
    const holder = listing ? this.#tell(listing, null) : null;
    return { type: "busy", holder, mark: listing?.mark ? markView(listing.mark) : null };
  }

  /** Tells the wait who is in the way. */
  #tell({ entries: [first] }: Listing, ahead: number | null): HolderView | null {
    const holder = first ? holderView(first, this.#around.port.clock.wallUs() / 1000) : null;
    this.#wait?.report(holder, ahead);
    return holder;
  }
}

function isFree({ entries, mark }: Listing): boolean {
  return entries.length === 0 && mark === null;
}

function isFinal(error: unknown): boolean {
  return error instanceof StoreError && !error.retryable;
}
