/**
 * Looks at the store for all viewers together, and only while there is a viewer. Its load is
 * bounded: a look takes in at most `MAX_LOCKS` locks and `LOOK_LIMIT_MS`, the next look begins
 * after a pause of several times the length of the last one, and never before the last one ended.
 */

import { setImmediate } from "node:timers/promises";
import type { LockView } from "../contract/store.js";
import { SPACES } from "../rules/name.js";
import type { Runtime } from "../time/runtime.js";
import { type Timer, within } from "../time/timers.js";
import { History, keyOfLock, type LockName, type Look } from "./history.js";
import type { Change, LockDetail, LockRow, StoreState } from "./message.js";
import type { ShownLocks } from "./options.js";
import { kindOf, rowOf, Snapshot, whoOf } from "./snapshot.js";
import { Timeline } from "./timeline.js";

/** Is told after every look. */
export interface Viewer {
  /** The lock that it looks at closely, if any. */
  readonly lock: LockName | null;
  onLook(): void;
}

const MAX_LOCKS = 20_000;
const LOOK_LIMIT_MS = 15_000;
/** So many times the length of a look passes before the next one. */
const REST_PART = 4;
/** After this many locks, other work of this process gets its turn. */
const LOCKS_PER_TURN = 500;
/** After a longer pause, two looks are not compared. */
const MAX_GAP_MS = 60_000;

export class Sampler {
  readonly history: History = new History();
  readonly timeline: Timeline = new Timeline();
  readonly #locks: ShownLocks;
  readonly #runtime: Runtime;
  readonly #everyMs: number;
  readonly #viewers = new Set<Viewer>();
  readonly #details = new Map<string, LockDetail>();
  #snapshot: Snapshot | null = null;
  #at = 0;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** How long after a look the next one is due. */
  #restMs: number;
  #state: StoreState;
  #timer: Timer | null = null;
  #isLooking = false;

  constructor(locks: ShownLocks, runtime: Runtime, everyMs: number) {
    this.#locks = locks;
    this.#runtime = runtime;
    this.#everyMs = everyMs;
    this.#restMs = everyMs;
    this.#state = { is: "asked", problem: "", since: this.wallMs() };
  }

  get state(): StoreState {
    return this.#state;
  }

  /** The last look that the store answered; null before the first. */
  get snapshot(): Snapshot | null {
    return this.#snapshot;
  }

  /** When that was, for people; 0 before the first. */
  get at(): number {
    return this.#at;
  }

  get viewers(): number {
    return this.#viewers.size;
  }

  wallMs(): number {
    return Math.floor(this.#runtime.clock.wallUs() / 1_000);
  }

  /** A lock that a viewer looks at closely; null until it was looked at. */
  detailOf(lock: LockName): LockDetail | null {
    return this.#details.get(keyOfLock(lock)) ?? null;
  }

  /** Tells the viewer of every look, until the returned function is called. */
  add(viewer: Viewer): () => void {
    this.#viewers.add(viewer);
    // A lock that is opened is shown soon, but not so soon that opening locks could load the store.
    const restMs = viewer.lock ? this.#restMs / 2 : this.#restMs;
    const dueMs = this.#lookedMs + restMs - this.#runtime.clock.nowMs();
    if (viewer.lock || !this.#timer) this.#lookAfter(Math.max(0, dueMs));
    return () => {
      this.#viewers.delete(viewer);
      if (this.#viewers.size > 0) return;
      this.#timer?.cancel();
      this.#timer = null;
      this.#details.clear();
    };
  }

  #lookAfter(delayMs: number): void {
    this.#timer?.cancel();
    this.#timer = this.#runtime.timers.after(delayMs, () => {
      this.#timer = null;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    // The look that is under way sets the next timer.
    if (this.#isLooking) return;
    this.#isLooking = true;
    const startMs = this.#runtime.clock.nowMs();
    const look = this.#takeIn();
    // A look that is given up may still end; no other begins before.
    const ended = look.then(
      () => {},
      () => {},
    );
    try {
      await within(this.#runtime.timers, LOOK_LIMIT_MS, look);
      this.#setState("here", "");
    } catch (error) {
      this.#setState("away", error instanceof Error ? error.message : String(error));
    }
    for (const viewer of this.#viewers) viewer.onLook();
    await ended;
    this.#isLooking = false;
    // A store that does not answer has no load of it, and is missed when it is back.
    const restMs =
      this.#state.is === "away" ? 0 : REST_PART * (this.#runtime.clock.nowMs() - startMs);
    this.#restMs = Math.max(this.#everyMs, restMs);
    if (this.#viewers.size > 0) this.#lookAfter(this.#restMs);
  }

  async #takeIn(): Promise<void> {
    const look = this.history.begin();
    const rows: LockRow[] = [];
    const isPartial = await this.#list(look, rows);
    const views = await this.#inspectWatched();
    const nowMs = this.#runtime.clock.nowMs();
    if (nowMs - this.#lookedMs > MAX_GAP_MS) this.history.forgetLook();
    this.#at = this.wallMs();
    this.#lookedMs = nowMs;
    const count = this.history.finish(look, nowMs, this.#at, isPartial);
    this.#snapshot = new Snapshot(rows, count.late, isPartial);
    this.timeline.addLook(this.#at, this.#snapshot.totals, count);
    this.#details.clear();
    for (const view of views) {
      const late = this.history.begin().note(view);
      this.#details.set(keyOfLock(view), lockDetail(view, late, this.history.changesOf(view)));
    }
  }

  /** Takes in all locks, one by one, and keeps only their lines. Whether locks were left out. */
  async #list(look: Look, rows: LockRow[]): Promise<boolean> {
    const untilMs = this.#runtime.clock.nowMs() + LOOK_LIMIT_MS / 2;
    for (const space of SPACES) {
      for await (const view of this.#locks.list({ space })) {
        if (view.holders.length + view.waiters.length === 0 && !view.mark) continue;
        if (rows.length >= MAX_LOCKS || this.#runtime.clock.nowMs() > untilMs) return true;
        rows.push(rowOf(view, look.note(view).size > 0));
        if (rows.length % LOCKS_PER_TURN === 0) await setImmediate();
      }
    }
    return false;
  }

  #inspectWatched(): Promise<LockView[]> {
    const watched = new Map<string, LockName>();
    for (const { lock } of this.#viewers) if (lock) watched.set(keyOfLock(lock), lock);
    const looks = [...watched.values()].map(({ space, name }) => this.#locks.inspect(name, space));
    return Promise.all(looks);
  }

  #setState(is: StoreState["is"], problem: string): void {
    const isSame = this.#state.is === is;
    this.#state = { is, problem, since: isSame ? this.#state.since : this.wallMs() };
  }
}

/** A page shows at most this many holders and waiters of one lock, and counts the rest. */
const MAX_SHOWN = 100;

/** One lock for its own page, with the tokens of its holders whose renewals are late. */
function lockDetail(
  view: LockView,
  late: ReadonlySet<bigint>,
  changes: readonly Change[],
): LockDetail {
  const { space, name, holders, waiters, mark } = view;
  return {
    space,
    name,
    kind: kindOf(view),
    holders: holders
      .slice(0, MAX_SHOWN)
      .map(({ token, mode, weight, meta, heldMs, remainingMs }) => ({
        ...whoOf(meta),
        token: `${token}`,
        mode,
        weight,
        heldMs,
        remainingMs,
        isLate: late.has(token),
      })),
    holderCount: holders.length,
    waiters: waiters.slice(0, MAX_SHOWN).map(({ mode, weight, meta, waitedMs }) => ({
      ...whoOf(meta),
      mode,
      weight,
      waitedMs,
    })),
    waiterCount: waiters.length,
    mark: mark && {
      ...whoOf(mark.meta),
      token: `${mark.token}`,
      remainingMs: mark.remainingMs,
    },
    changes,
  };
}
