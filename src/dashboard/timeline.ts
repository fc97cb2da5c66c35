import type { ChangeCount } from "./history.js";
import type { Point, Totals } from "./message.js";

/** An hour, in points of ten seconds. */
export const POINT_MS = 10_000;
const MAX_POINTS = 360;
/** Reasons of losses are few; a number of them all the same keeps a point small. */
const MAX_REASONS = 12;

type OpenPoint = { -readonly [Field in keyof Point]: Point[Field] } & {
  lost: Record<string, number>;
};

/** The last hour as points of a chart. */
export class Timeline {
  readonly #points = new Ring<OpenPoint>(MAX_POINTS);

  addLook(at: number, totals: Totals, { grants, expired, late }: ChangeCount): void {
    const point = this.#pointAt(at);
    point.waiters = Math.max(point.waiters, totals.waiters);
    point.contended = Math.max(point.contended, totals.contended);
    point.longestWaitMs = Math.max(point.longestWaitMs, totals.longestWaitMs);
    point.late = Math.max(point.late, late);
    point.grants += grants;
    point.expired += expired;
  }

  addLoss(at: number, reason: string): void {
    const { lost } = this.#pointAt(at);
    if (reason in lost || Object.keys(lost).length < MAX_REASONS) {
      lost[reason] = (lost[reason] ?? 0) + 1;
    }
  }

  addFailedRenewal(at: number): void {
    this.#pointAt(at).failedRenewals += 1;
  }

  addRevocation(at: number): void {
    this.#pointAt(at).revoked += 1;
  }

  /** The points that began at this time or later. */
  since(at: number): Point[] {
    return [...this.#points].filter((point) => point.at >= at);
  }

  /** A wall clock that was set back adds to the newest point, so that points stay in order. */
  #pointAt(at: number): OpenPoint {
    const start = at - (at % POINT_MS);
    const { last } = this.#points;
    if (last && start <= last.at) return last;
    const point: OpenPoint = {
      at: start,
      waiters: 0,
      contended: 0,
      longestWaitMs: 0,
      grants: 0,
      late: 0,
      expired: 0,
      revoked: 0,
      lost: {},
      failedRenewals: 0,
    };
    this.#points.push(point);
    return point;
  }
}

/** The newest items, at most `capacity` of them. */
class Ring<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #start = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get last(): T | undefined {
    const { length } = this.#items;
    return length === 0 ? undefined : this.#items[(this.#start + length - 1) % length];
  }

  push(item: T): void {
    if (this.#items.length < this.#capacity) {
      this.#items.push(item);
      return;
    }
    this.#items[this.#start] = item;
    this.#start = (this.#start + 1) % this.#capacity;
  }

  /** Oldest first. */
  *[Symbol.iterator](): Generator<T, void> {
    yield* this.#items.slice(this.#start);
    yield* this.#items.slice(0, this.#start);
  }
}
