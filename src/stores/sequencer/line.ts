/**
 * The waiters of this process for one name.
 *
 * Nobody holds behind somebody who does not, so only the first of them is watched for: one watch
 * for each process and name, on just what blocks that one. An event is a reason to look; what
 * counts is the line as the store lists it, own entry included. Only the next in line, of whom
 * there is one in all processes, watches the whole line, and so needs no look to know that its turn
 * has come. Where the obstacle is an entry of this very process, its release brings the line along,
 * and nothing is watched at all. Watches may break, and events get lost with the server that had
 * them: then, and every now and then anyway, it looks again. Two processes that take turns find
 * themselves next in line again and again: so the watch on the line stays for a moment after the
 * last waiter, until it has told too much that nobody here wanted to know.
 *
 * After an event, the line of any moment since will do: who held then holds still, unless its entry
 * was taken away by a revoke. Of that it hears as any holder does: by the watch on its entry, or at
 * the next proof of its session. The end of the session itself lies behind its deadline, however
 * old the look.
 */
import { StoreError } from "../../errors.js";
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import type { Change, Listing, Mark, OwnEntry, Place, Sequencer, Watch } from "./sequencer.js";
import { holderCount, obstacleOf } from "./standing.js";

/** Whoever waits in a line. */
export interface Waiter {
  readonly entry: OwnEntry;
  /** It holds, as the line shows; `index` is its place there. */
  onTurn(listing: Listing, index: number): void;
  /** Its entry is gone. */
  onMissing(): void;
  onMark(mark: Mark): void;
  /** To ask again would not help. */
  onFailure(error: unknown): void;
  /** The store did not answer a question that was sent then; it is asked again. */
  onUnanswered(sentMs: number, error: unknown): void;
  onAnswered(): void;
}

export interface LineDuties {
  readonly port: Port;
  readonly sequencer: Sequencer;
  /** Whether an entry belongs to a lease of this process, which will tell when it ends. */
  isHeldHere(place: Place, id: string): boolean;
  /** Nobody waits, and nothing is watched. */
  onIdle(): void;
}

interface LineWatch {
  readonly key: string;
  /** Null where a lease of this process will tell. */
  readonly handle: Watch | null;
  /** Who left since the line was last seen, and when. Only the watch on the line keeps it. */
  readonly gone: Map<string, bigint>;
  /** How often it told while nobody waited. */
  unwanted: number;
}

const BACKSTOP_MS = 3_000;
const CALL_MS = 1_500;
const RETRY_MS = 100;
const LONGEST_RETRY_MS = 1_000;
const LINGER_MS = 250;
/** The end of the own lease, and one more. */
const MOST_UNWANTED = 2;
/** The watch on the whole line. */
const ALL = "*";

export class Line {
  readonly place: Place;
  readonly #duties: LineDuties;
  /** In the order of their entries. */
  readonly #waiters: Waiter[] = [];
  #watch: LineWatch | null = null;
  /** While somebody waits: when to look anyway. Else: when to end the watch. */
  #timer: Timer | undefined;
  /** The line as last seen. */
  #listing: Listing | null = null;
  /** What has been heard of, but not seen yet. */
  #heardAt = 0n;
  #seenAt = 0n;
  #isLooking = false;
  #failures = 0;

  constructor(place: Place, duties: LineDuties) {
    this.place = place;
    this.#duties = duties;
  }

  get size(): number {
    return this.#waiters.length;
  }

  add(waiter: Waiter, listing: Listing): void {
    const { order } = waiter.entry;
    const index = this.#waiters.findLastIndex((other) => other.entry.order < order) + 1;
    this.#waiters.splice(index, 0, waiter);
    if (this.#waiters.length === 1) this.#arm();
    this.see(listing);
  }

  remove(waiter: Waiter): void {
    const index = this.#waiters.indexOf(waiter);
    if (index < 0) return;
    this.#waiters.splice(index, 1);
    if (this.#waiters.length > 0) return;
    this.#timer?.cancel();
    const isWorthKeeping = this.#watch?.key === ALL && this.#watch.handle !== null;
    if (!isWorthKeeping) return this.close();
    this.#timer = this.#duties.port.timers.after(LINGER_MS, () => this.close());
  }

  /** Ends what nobody waits for any more. */
  close(): void {
    this.#timer?.cancel();
    this.#unwatch();
    this.#duties.onIdle();
  }

  /** Judges everybody by the line as it was at one moment. */
  see(listing: Listing): void {
    const { at, entries, mark } = listing;
    // The answer of a newcomer was overtaken: what is watched fits a later moment.
    if (at < this.#seenAt) return this.look(at);
    this.#seenAt = at;
    this.#listing = listing;
    const gone = this.#watch?.gone ?? new Map<string, bigint>();
    for (const [id, goneAt] of gone) if (goneAt <= at) gone.delete(id);
    const places = new Map(entries.map(({ id }, index) => [id, index]));
    const holders = holderCount(entries);
    let blocked: number | undefined;
    for (const waiter of [...this.#waiters]) {
      const index = places.get(waiter.entry.id);
      const isOther = index !== undefined && entries[index]?.order !== waiter.entry.order;
      if (mark) waiter.onMark(mark);
      else if (index === undefined || isOther) {
        if (at >= waiter.entry.order) waiter.onMissing();
      } else if (index < holders) waiter.onTurn(listing, index);
      else blocked ??= index;
    }
    if (blocked !== undefined && this.#waiters.length > 0) this.#watchFor(listing, blocked);
  }

  /** Looks at the line; once more when something was heard of meanwhile. */
  look(heardAt = 0n): void {
    if (heardAt > this.#heardAt) this.#heardAt = heardAt;
    if (this.#isLooking || this.#waiters.length === 0) return;
    this.#isLooking = true;
    void this.#look();
  }

  async #look(): Promise<void> {
    const { sequencer, port } = this.#duties;
    const sentMs = port.clock.nowMs();
    const since = this.#heardAt > 0n ? this.#heardAt : undefined;
    const seenBefore = this.#seenAt;
    try {
      const listing = await sequencer.list(this.place, "plain", CALL_MS, since);
      this.#isLooking = false;
      this.#failures = 0;
      for (const waiter of this.#waiters) waiter.onAnswered();
      const isBehind = listing.at < this.#heardAt || listing.at < this.#seenAt;
      this.#heardAt = 0n;
      // Asked for the present, the store answered with the past: it has lost its data.
      if (since === undefined && listing.at < seenBefore) {
        this.#seenAt = 0n;
        this.#unwatch();
      }
      if (listing.at >= this.#seenAt) this.see(listing);
      if (isBehind) this.look();
      else if (this.#waiters.length > 0) this.#arm();
    } catch (error) {
      this.#isLooking = false;
      this.#failures += 1;
      this.#endure(sentMs, error);
    }
  }

  /** Each waiter bears the silence of the store for as long as it was told to. */
  #endure(sentMs: number, error: unknown): void {
    const isFinal = error instanceof StoreError && !error.retryable;
    for (const waiter of [...this.#waiters]) {
      if (isFinal) waiter.onFailure(error);
      else waiter.onUnanswered(sentMs, error);
    }
    if (this.#waiters.length > 0) {
      this.#arm(Math.min(RETRY_MS * this.#failures, LONGEST_RETRY_MS));
    }
  }

  #watchFor(listing: Listing, index: number): void {
    const what = obstacleOf(listing.entries, index);
    const key = what.type === "leaving" ? ALL : `${what.id}${what.orWritten ? "+" : ""}`;
    const { sequencer, isHeldHere } = this.#duties;
    const ahead = what.type === "entry" ? [what] : listing.entries.slice(0, index);
    const isTold = ahead.every(({ id }) => isHeldHere(this.place, id));
    const watch = this.#watch;
    if (watch?.key === key && (watch.handle || isTold)) {
      // Its events overtook this listing.
      const goneAt = [...watch.gone.values()].at(-1);
      if (goneAt !== undefined) this.#strike(watch, goneAt);
      return;
    }
    this.#unwatch();
    const handle = isTold
      ? null
      : sequencer.watch(this.place, what, listing.at, (change) => this.#onChange(key, change));
    this.#watch = { key, handle, gone: new Map(), unwanted: 0 };
  }

  #onChange(key: string, change: Change): void {
    const watch = this.#watch;
    if (watch?.key !== key) return;
    if (change.type === "broken") {
      this.#watch = null;
      return this.#waiters.length > 0 ? this.look() : this.close();
    }
    const isStruck = change.type === "gone" && key === ALL;
    // Of one that left before the line was seen, another in it may have the name.
    if (isStruck) {
      for (const [id, at] of change.ids) if (at > this.#seenAt) watch.gone.set(id, at);
    }
    if (this.#waiters.length === 0) {
      watch.unwanted += 1;
      if (watch.unwanted > MOST_UNWANTED) this.close();
      return;
    }
    watch.unwanted = 0;
    if (change.at <= this.#seenAt) return;
    if (isStruck) this.#strike(watch, change.at);
    else this.look(change.at);
  }

  /**
   * The watch is on the whole line and began where the line was seen, or before: what is left of it
   * is known without asking, own entry included. Of those who came since nothing is known: they are
   * behind.
   */
  #strike({ gone }: LineWatch, at: bigint): void {
    const [first] = this.#waiters;
    const left = this.#listing?.entries.filter(({ id }) => !gone.has(id)) ?? [];
    // rule: turn-by-the-queue-not-the-event
    const isNext = first && left[0]?.order === first.entry.order;
    // A shared one may have to tell those behind it, and a mark is no entry that leaves.
    if (isNext && left[0]?.mode === "exclusive" && this.place.space !== "once") {
      first.onTurn({ at, entries: left, mark: null }, 0);
    }
    this.look(at);
  }

  #unwatch(): void {
    this.#watch?.handle?.close();
    this.#watch = null;
  }

  /** Waiting keeps the process alive. */
  #arm(delayMs = this.#backstopMs()): void {
    this.#timer?.cancel();
    // rule: waiter-looks-by-itself
    this.#timer = this.#duties.port.timers.after(delayMs, () => this.look(), true);
  }

  /** Spread out, so that those who came together do not look together for ever. */
  #backstopMs(): number {
    return BACKSTOP_MS * (0.75 + this.#duties.port.random.fraction() / 2);
  }
}
