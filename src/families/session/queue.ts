/**
 * The waiters of this process in one queue.
 *
 * An entry cannot hold before the entries ahead of it, so all waiters share one watch, on whatever
 * blocks the first of them. When the watch reports a change, the queue is listed again. A waiter
 * takes the lock only when a listing that includes its own entry shows that it holds.
 *
 * Three shortcuts save requests. The waiter directly behind the holders watches every entry that
 * leaves; if the store reports these in order, removing them from the last listing shows one round
 * trip earlier that the waiter holds. If the blocking entry is a lease of this process, no watch is
 * needed: the release of that lease also checks that the next waiter's entry is there. And a waiter
 * behind another one of this process needs no watch.
 *
 * The queue is listed again when a watch breaks, and every few seconds anyway, because a server can
 * lose a change.
 *
 * After a change, a listing of any later moment is recent enough. An entry that held then still
 * holds, unless it was revoked, and the holder learns of that from the watch on its entry or the
 * next proof of its session. An old listing does not extend the deadline, which is always before
 * the end of the session.
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

/** An acquisition of this process that waits in a queue. */
export interface Waiter {
  readonly entry: OwnEntry;
  /** How long the store may stay silent before the waiter fails. */
  readonly patienceMs: number;
  /** The listing shows, at `index`, that the waiter holds the lock. */
  onTurn(listing: Listing, index: number): void;
  /** The waiter's entry is gone from the queue. */
  onMissing(): void;
  onMark(mark: ListedMark): void;
  /** Listing the queue failed, and would fail again. */
  onFailure(error: unknown): void;
  /** A request sent at `sentMs` failed. The queue retries it. */
  onUnanswered(sentMs: number, error: unknown): void;
  onAnswered(): void;
}

/**
 * The longest time between two listings of a queue. It is shorter if a waiter is less patient, so
 * that the waiter notices a silent store in time.
 */
export const MAX_BACKSTOP_MS = 3_750;
const CALL_MS = 1_500;
const RETRY_MS = { firstMs: 100, longestMs: 1_000 };

export class Queue {
  readonly lock: LockId;
  readonly #sequencer: Sequencer;
  readonly #held: HeldEntries;
  readonly #backoff: Backoff;
  /** By the id of their entries, with the moment at which each entry was first known to exist. */
  readonly #waiters = new Map<string, { readonly waiter: Waiter; readonly since: Moment }>();
  #watch: { readonly obstacle: string; readonly handle: QueueWatch } | null = null;
  /** Fires when it is time for a periodic listing or a retry. */
  #timer: Timer | undefined;
  #longestMs = MAX_BACKSTOP_MS;
  /** The latest listing, without the entries of this process that have left since. */
  #seen: Listing | null = null;
  /** The watch that reported a change which no listing has shown yet. */
  #teller: QueueWatch | null = null;
  /** The moments of the changes reported since the last listing was requested. */
  #told: (Moment | null)[] = [];
  #isLooking = false;
  /** Whether a waiter joined after the last listing was requested. */
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

  /** The first entry of the latest listing; null if unknown. */
  get first(): Entry | null {
    return this.#seen?.entries[0] ?? null;
  }

  /** Adds a waiter whose entry is in the listing. */
  add(waiter: Waiter, listing: Listing): void {
    this.#join(waiter, listing.moment);
    this.see(listing);
  }

  /** Adds a waiter whose entry was made at this moment, behind all other waiters. */
  addBehind(waiter: Waiter, moment: Moment): void {
    const isFirst = this.size === 0;
    this.#join(waiter, moment);
    // The waiters ahead of it have left in the meantime.
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

  /** Applies a listing to all waiters. */
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
    // All remaining waiters joined after this listing.
    else if (this.#hasNewcomers) this.look();
  }

  /**
   * Returns the entry of the local waiter that holds the lock once the given entry has left. The
   * release then only checks that this entry is still there. Returns null if a listing is needed:
   * a shared waiter may have to notify entries behind it, and a `once` may have left a mark.
   */
  nextAfter({ id }: OwnEntry): OwnEntry | null {
    const next = this.#seen?.entries.find((entry) => entry.id !== id);
    if (next?.mode !== "exclusive" || this.lock.space === "once") return null;
    return this.#waiterOf(next)?.entry ?? null;
  }

  /**
   * Handles the end of an entry of this process after which the queue was not listed. `next`: the
   * entry from `nextAfter`, and a moment after the end at which it was there.
   */
  left({ id }: OwnEntry, next: { readonly entry: OwnEntry; readonly at: Moment } | null): void {
    if (!this.#seen) return this.look();
    const entries = this.#seen.entries.filter((entry) => entry.id !== id);
    this.#seen = { ...this.#seen, entries };
    const [first] = entries;
    // All entries that were ever ahead of this one have left, and it was still there after that.
    const served = first && next && isSame(first, next.entry) ? this.#waiterOf(first) : undefined;
    if (next) served?.onTurn({ moment: next.at, entries, mark: null }, 0);
    if (this.size === 0) return;
    const index = entries.findIndex((entry) => this.#waiterOf(entry));
    if (index >= holderCount(entries)) this.#watchFor(this.#seen, index);
    // A waiter that joined after the listing is served when the lease just granted ends.
    else if (index >= 0 || !served) this.look();
  }

  /** Lists the queue, unless a listing is in progress. */
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
      // A fresh listing is older than one seen before, so the store has lost data.
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

  /** Reports the failure to all waiters; each has its own limit. Retries if any waiters remain. */
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
    // A watch on all leaving entries starts from its listing, so restart it with the latest one.
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
   * Grants the lock to an exclusive waiter at the head of the queue. Shared waiters and onces wait
   * for a complete listing: this one shows no mark, and no newer entries that may need notifying.
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

  /** Schedules the next listing. The timer keeps the process alive. */
  #arm(delayMs = this.#backstopMs()): void {
    this.#timer?.cancel();
    // rule: waiter-looks-by-itself
    this.#timer = this.#sequencer.runtime.timers.after(delayMs, () => this.look(), true);
  }

  /** Random, so that processes that started to wait together do not keep listing together. */
  #backstopMs(): number {
    return this.#longestMs * (0.6 + 0.4 * this.#sequencer.runtime.random.fraction());
  }
}
