/**
 * The waiters of this process in one queue.
 *
 * If an entry does not hold, no later entry holds. So the waiters share one watch, on just the
 * obstacle of the first of them. A change is a reason to list the queue; a waiter holds only when a
 * listing shows that it does, own entry included. One waiter of all processes, the one directly
 * behind the holders, watches every entry that leaves: where the store tells of these in their
 * order, the listing without them shows that its turn has come, one round trip earlier. Where the
 * obstacle is an entry of a lease of this process, no watch is needed: the release of that lease
 * asks whether the entry of the next waiter is there, and needs no listing for each turn of a
 * crowd. A waiter that comes behind another one of this process needs none, either. A watch may
 * break, and a change may be lost with the server that had it: the queue is listed again then, and
 * every few seconds anyway.
 *
 * After a change, a listing of any moment since will do. An entry that held then holds still,
 * unless a revoke removed it. The holder hears of a revoke by the watch on its entry, or at the
 * next proof of its session. The end of the session lies behind the deadline, however old the
 * listing is.
 */
import { isFinal } from "../../errors/index.js";
import { Backoff } from "../../time/backoff.js";
import type { Timer } from "../../time/timers.js";
import type { HeldEntries } from "./held-entries.js";
import type {
  Entry,
  ListedMark,
  Listing,
  LockId,
  Moment,
  OwnEntry,
  QueueChange,
  QueueWatch,
  Sequencer,
} from "./sequencer.js";
import { holderCount, isSame, obstacleOf } from "./standing.js";

/** A part of this process that waits in a queue. */
export interface Waiter {
  readonly entry: OwnEntry;
  /** The silence of the store that the waiter endures. */
  readonly patienceMs: number;
  /** The listing shows that the waiter holds; `index` is its place there. */
  onTurn(listing: Listing, index: number): void;
  /** The entry of the waiter has left. */
  onMissing(): void;
  onMark(mark: ListedMark): void;
  /** The store refused to list the queue, and will refuse again. */
  onFailure(error: unknown): void;
  /** The store did not answer a request that was sent at `sentMs`; it is sent again. */
  onUnanswered(sentMs: number, error: unknown): void;
  onAnswered(): void;
}

/**
 * A waiter lists the queue by itself after this time at the latest, and after its patience: a
 * silence is noticed within the time for which it is endured.
 */
export const MAX_BACKSTOP_MS = 3_750;
const CALL_MS = 1_500;
const RETRY_MS = { firstMs: 100, longestMs: 1_000 };

export class Queue {
  readonly lock: LockId;
  readonly #sequencer: Sequencer;
  readonly #held: HeldEntries;
  readonly #backoff: Backoff;
  /** By the id of their entries, with the moment at which each was seen first. */
  readonly #waiters = new Map<string, { readonly waiter: Waiter; readonly since: Moment }>();
  #watch: { readonly obstacle: string; readonly handle: QueueWatch } | null = null;
  /** Fires when the queue is to be listed without a change. */
  #timer: Timer | undefined;
  #longestMs = MAX_BACKSTOP_MS;
  /** The latest listing, without the entries of this process that have left since. */
  #seen: Listing | null = null;
  /** The watch that told a change which no listing has shown yet. */
  #teller: QueueWatch | null = null;
  /** The moments of changes that were told while a listing was under way. */
  #told: (Moment | null)[] = [];
  #isLooking = false;
  /** Whether a waiter joined after the last look was sent. */
  #hasNewcomers = false;

  constructor(lock: LockId, sequencer: Sequencer, held: HeldEntries) {
    this.lock = lock;
    this.#sequencer = sequencer;
    this.#held = held;
    this.#backoff = new Backoff(sequencer.runtime.random, RETRY_MS);
  }

  get size(): number {
    return this.#waiters.size;
  }

  /** The entry at the head, as far as it is known here. */
  get first(): Entry | null {
    return this.#seen?.entries[0] ?? null;
  }

  /** The entry of the waiter is in the listing. */
  add(waiter: Waiter, listing: Listing): void {
    this.#join(waiter, listing.moment);
    this.see(listing);
  }

  /** The entry of the waiter was made at this moment, behind all other waiters. */
  addBehind(waiter: Waiter, moment: Moment): void {
    const isFirst = this.size === 0;
    this.#join(waiter, moment);
    // Those that it came behind have left the queue in the meantime.
    if (isFirst) this.look();
  }

  #join(waiter: Waiter, since: Moment): void {
    this.#waiters.set(waiter.entry.id, { waiter, since });
    this.#hasNewcomers = true;
    const longestMs = Math.max(waiter.patienceMs, CALL_MS);
    const isImpatient = longestMs < this.#longestMs;
    if (isImpatient) this.#longestMs = longestMs;
    if (isImpatient || this.#waiters.size === 1) this.#arm();
  }

  remove(waiter: Waiter): void {
    const { id } = waiter.entry;
    if (this.#waiters.get(id)?.waiter !== waiter) return;
    this.#waiters.delete(id);
    if (this.#waiters.size === 0) this.close();
  }

  close(): void {
    this.#timer?.cancel();
    this.#unwatch();
  }

  /** Judges all waiters by a listing. */
  see(listing: Listing): void {
    if (this.#isOvertaken(listing)) return this.look();
    this.#seen = listing;
    const { entries, mark } = listing;
    if (mark) {
      for (const { waiter } of [...this.#waiters.values()]) waiter.onMark(mark);
      return;
    }
    const holders = holderCount(entries);
    const listed = new Set<Waiter>();
    let blocked: number | undefined;
    for (const [index, entry] of entries.entries()) {
      const waiter = this.#waiterOf(entry);
      if (!waiter) continue;
      listed.add(waiter);
      if (index < holders) waiter.onTurn(listing, index);
      else blocked ??= index;
    }
    for (const { waiter, since } of [...this.#waiters.values()]) {
      if (!listed.has(waiter) && !listing.moment.isBefore(since)) waiter.onMissing();
    }
    if (this.size === 0) return;
    if (blocked !== undefined) this.#watchFor(listing, blocked);
    // All waiters that are left came after this listing.
    else if (this.#hasNewcomers) this.look();
  }

  /**
   * The entry of the waiter that holds as soon as the entry of a lease has left: the release of
   * that lease asks for no listing then, but whether this one is there. Null where a listing is
   * needed. A shared waiter may have to tell entries behind it, and a mark may be left for a once.
   */
  nextAfter({ id }: OwnEntry): OwnEntry | null {
    const next = this.#seen?.entries.find((entry) => entry.id !== id);
    if (next?.mode !== "exclusive" || this.lock.space === "once") return null;
    return this.#waiterOf(next)?.entry ?? null;
  }

  /**
   * An entry of this process left, and the queue was not listed. `next`: the entry that was
   * `nextAfter` it, and a moment since at which that one was there.
   */
  left({ id }: OwnEntry, next: { readonly entry: OwnEntry; readonly at: Moment } | null): void {
    if (!this.#seen) return this.look();
    const entries = this.#seen.entries.filter((entry) => entry.id !== id);
    this.#seen = { ...this.#seen, entries };
    const [first] = entries;
    // All entries that ever were ahead of this one have left, and it was there after them.
    const served = first && next && isSame(first, next.entry) ? this.#waiterOf(first) : undefined;
    if (next) served?.onTurn({ moment: next.at, entries, mark: null }, 0);
    if (this.size === 0) return;
    const index = entries.findIndex((entry) => this.#waiterOf(entry));
    if (index >= holderCount(entries)) this.#watchFor(this.#seen, index);
    // Waiters that came after the listing are shown by the end of the lease that was just given.
    else if (index >= 0 || !served) this.look();
  }

  /** Lists the queue, unless that is under way. */
  look(): void {
    if (this.#isLooking || this.size === 0) return;
    this.#isLooking = true;
    void this.#look();
  }

  async #look(): Promise<void> {
    const { runtime } = this.#sequencer;
    const sentMs = runtime.clock.nowMs();
    const [teller, before] = [this.#teller, this.#seen];
    this.#teller = null;
    this.#told = [];
    this.#hasNewcomers = false;
    try {
      const listing = await (teller
        ? teller.list(CALL_MS)
        : this.#sequencer.list(this.lock, "plain", CALL_MS));
      this.#isLooking = false;
      this.#backoff.reset();
      for (const { waiter } of this.#waiters.values()) waiter.onAnswered();
      // Asked for the present, the store answered with the past: it has lost its data.
      if (!teller && before && listing.moment.isBefore(before.moment)) {
        this.#seen = null;
        this.#unwatch();
      }
      const isBehind =
        this.#isOvertaken(listing) ||
        this.#told.some((moment) => moment === null || listing.moment.isBefore(moment));
      if (!this.#isOvertaken(listing)) this.see(listing);
      this.#teller = null;
      if (isBehind) this.look();
      else if (this.size > 0) this.#arm();
    } catch (error) {
      this.#isLooking = false;
      this.#endure(sentMs, error);
    }
  }

  /** Each waiter endures the silence of the store for as long as its own limit says. */
  #endure(sentMs: number, error: unknown): void {
    for (const { waiter } of [...this.#waiters.values()]) {
      if (isFinal(error)) waiter.onFailure(error);
      else waiter.onUnanswered(sentMs, error);
    }
    if (this.size > 0) this.#arm(this.#backoff.nextMs());
  }

  #isOvertaken(listing: Listing): boolean {
    return this.#seen !== null && listing.moment.isBefore(this.#seen.moment);
  }

  #waiterOf(entry: Entry): Waiter | undefined {
    const waiter = this.#waiters.get(entry.id)?.waiter;
    return waiter && isSame(entry, waiter.entry) ? waiter : undefined;
  }

  #watchFor(listing: Listing, index: number): void {
    const { entries } = listing;
    const obstacle = obstacleOf(entries, index);
    const ahead = obstacle.type === "entry" ? [obstacle] : entries.slice(0, index);
    if (ahead.every(({ id }) => this.#held.has(this.lock, id))) return this.#unwatch();
    const key = obstacle.type === "entry" ? `${obstacle.id} ${obstacle.orWritten}` : "";
    // A watch on all entries that leave shows what is left of its listing: the latest one is best.
    if (this.#watch?.obstacle === key && obstacle.type === "entry") return;
    this.#unwatch();
    const handle = this.#sequencer.watchQueue(this.lock, obstacle, listing, (change) => {
      if (this.#watch?.handle === handle) this.#onChange(handle, change);
    });
    this.#watch = { obstacle: key, handle };
  }

  #onChange(teller: QueueWatch, change: QueueChange): void {
    if (change.type === "broken") {
      this.#watch = null;
      return this.look();
    }
    const { moment } = change;
    if (moment && this.#seen && !this.#seen.moment.isBefore(moment)) return;
    this.#teller = teller;
    this.#told.push(moment);
    if (change.type === "left") this.#serveFirst(change.listing);
    this.look();
  }

  /**
   * A waiter at the head of the queue holds. A shared waiter may have to tell entries behind it,
   * which this listing lacks, and so does a mark: these two wait for a complete listing.
   */
  #serveFirst(listing: Listing): void {
    const [first] = listing.entries;
    if (first?.mode !== "exclusive" || this.lock.space === "once") return;
    // rule: turn-by-the-queue-not-the-event
    const waiter = this.#waiterOf(first);
    waiter?.onTurn(listing, 0);
  }

  #unwatch(): void {
    this.#watch?.handle.close();
    this.#watch = null;
  }

  /** Waiting keeps the process alive. */
  #arm(delayMs = this.#backstopMs()): void {
    this.#timer?.cancel();
    // rule: waiter-looks-by-itself
    this.#timer = this.#sequencer.runtime.timers.after(delayMs, () => this.look(), true);
  }

  /** Spread out, so that waiters which came together do not list together for ever. */
  #backstopMs(): number {
    return this.#longestMs * (0.6 + 0.4 * this.#sequencer.runtime.random.fraction());
  }
}
