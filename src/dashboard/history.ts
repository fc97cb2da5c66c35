import type { LockView } from "../contract/store.js";
import type { Change } from "./message.js";
import { nameOf } from "./snapshot.js";

/** The name of a lock, with its space. */
export type LockName = Pick<LockView, "space" | "name">;

/** A grant, as the last look showed it. */
interface SeenGrant {
  readonly who: string;
  readonly remainingMs: number;
  /** The longest time left that was ever seen: about its ttl. */
  readonly longestMs: number;
}

type SeenGrants = ReadonlyMap<bigint, SeenGrant>;

/** The numbers of one look, against the look before it. */
export interface ChangeCount {
  readonly grants: number;
  readonly expired: number;
  readonly late: number;
}

const MAX_PER_LOCK = 20;
const MAX_CHANGES = 20_000;
/** So many are left when the oldest ones are dropped. */
const KEPT_CHANGES = 18_000;
/** More holders of one lock than these are counted, and not followed. */
const MAX_HOLDERS = 100;
/** A grant with less than this part of its longest time has missed a renewal. */
const LATE_PART = 1 / 2;

const NONE: ReadonlySet<bigint> = new Set();

/** One text for each lock: the space has no colon. */
export function keyOfLock({ space, name }: LockName): string {
  return `${space}:${name}`;
}

/**
 * The changes of locks between two looks. It keeps the last few changes of each lock, and of
 * the locks that changed last: the sum is bounded, however many locks come and go.
 */
export class History {
  #seen: ReadonlyMap<string, SeenGrants> | null = null;
  #seenMs = 0;
  #isPartial = false;
  /** In the order of the last change, so that the first one is dropped first. */
  readonly #changes = new Map<string, Change[]>();
  #size = 0;

  /** How many changes are kept. */
  get size(): number {
    return this.#size;
  }

  /** Begins a look. One that fails is dropped, and leaves nothing behind. */
  begin(): Look {
    return new Look(this.#seen);
  }

  /**
   * Compares a look with the one before it. `nowMs` is monotonic, `at` is for people. A look that
   * is not complete says nothing of locks that it lacks.
   */
  finish(look: Look, nowMs: number, at: number, isPartial: boolean): ChangeCount {
    const before = this.#seen;
    const { seen } = look;
    const elapsedMs = nowMs - this.#seenMs;
    const count = { grants: 0, expired: 0, late: look.late };
    // Ends first: a lock that changed hands was given back before it was granted.
    for (const [key, old] of before ?? []) {
      const grants = seen.get(key);
      if (!grants && isPartial) continue;
      for (const [token, { who, remainingMs }] of old) {
        if (grants?.has(token)) continue;
        const isExpired = remainingMs <= elapsedMs;
        if (isExpired) count.expired += 1;
        this.#add(key, { at, what: isExpired ? "expired" : "ended", token: `${token}`, who });
      }
    }
    for (const [key, grants] of before ? seen : []) {
      const old = before?.get(key);
      if (!old && this.#isPartial) continue;
      for (const [token, { who }] of grants) {
        if (old?.has(token)) continue;
        count.grants += 1;
        this.#add(key, { at, what: "granted", token: `${token}`, who });
      }
    }
    this.#seen = seen;
    this.#seenMs = nowMs;
    this.#isPartial = isPartial;
    return count;
  }

  /** The next look cannot be compared with the last: too many changes were missed. */
  forgetLook(): void {
    this.#seen = null;
  }

  noteRevocation(lock: LockName, token: string, actor: string, at: number): void {
    this.#add(keyOfLock(lock), { at, what: "revoked", token, who: actor });
  }

  /** The changes of one lock, newest first. */
  changesOf(lock: LockName): readonly Change[] {
    return (this.#changes.get(keyOfLock(lock)) ?? []).toReversed();
  }

  #add(key: string, change: Change): void {
    const changes = this.#changes.get(key) ?? [];
    this.#changes.delete(key);
    this.#changes.set(key, changes);
    changes.push(change);
    this.#size += 1;
    if (changes.length > MAX_PER_LOCK) {
      changes.shift();
      this.#size -= 1;
    }
    if (this.#size <= MAX_CHANGES) return;
    // A map skips deleted entries one by one, so many are dropped at once.
    for (const [oldest, { length }] of this.#changes) {
      this.#changes.delete(oldest);
      this.#size -= length;
      if (this.#size <= KEPT_CHANGES) break;
    }
  }
}

/** One look at all locks, for as long as it takes. */
export class Look {
  readonly seen: Map<string, SeenGrants> = new Map();
  /** How many grants have missed a renewal. */
  late = 0;
  readonly #before: ReadonlyMap<string, SeenGrants> | null;

  constructor(before: ReadonlyMap<string, SeenGrants> | null) {
    this.#before = before;
  }

  /** Takes in one lock. Returns the tokens of the grants that have missed a renewal. */
  note(view: LockView): ReadonlySet<bigint> {
    const key = keyOfLock(view);
    const old = this.#before?.get(key);
    const grants = new Map<bigint, SeenGrant>();
    let late = NONE;
    for (const { token, meta, remainingMs } of view.holders.slice(0, MAX_HOLDERS)) {
      const before = old?.get(token);
      const longestMs = Math.max(remainingMs, before?.longestMs ?? 0);
      grants.set(token, { who: before?.who ?? nameOf(meta), remainingMs, longestMs });
      if (remainingMs < longestMs * LATE_PART) late = new Set([...late, token]);
    }
    this.seen.set(key, grants);
    this.late += late.size;
    return late;
  }
}
