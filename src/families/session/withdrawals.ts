/**
 * Removes entries from their queues, retrying until the store answers or the session ends.
 *
 * Without this, an unwanted entry would live as long as the other entries of its session. When an
 * entry has left, the waiters of this process in the same queue are updated.
 */
import { isFinal, StoreError } from "../../errors/index.js";
import { Backoff } from "../../time/backoff.js";
import { pause } from "../../time/pause.js";
import type { Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import { WorkUnderWay } from "../../time/work-under-way.js";
import type { Queues } from "./queues.js";
import type { LeaveOptions, Leaving, OwnEntry, Sequencer } from "./sequencer.js";
import type { Session } from "./session.js";
import { isSame } from "./standing.js";

const CALL_MS = 1_500;
const RETRY_MS = { firstMs: 50, longestMs: 1_000 };
/** The longest time for which removing the entry may delay the end of a wait. */
const SOON_MS = 1_000;

export class Withdrawals {
  readonly #sequencer: Sequencer;
  readonly #runtime: Runtime;
  readonly #queues: Queues;
  readonly #underWay = new WorkUnderWay();

  constructor(sequencer: Sequencer, queues: Queues) {
    this.#sequencer = sequencer;
    this.#runtime = sequencer.runtime;
    this.#queues = queues;
  }

  /** Resolves when all pending removals have ended. */
  settled(): Promise<void> {
    return this.#underWay.settled();
  }

  /** Ends a lease. If the store does not answer in time, throws and keeps trying in background. */
  release(
    entry: OwnEntry,
    session: Session,
    withinMs: number,
    mark: LeaveOptions["mark"],
  ): Promise<boolean> {
    return this.#underWay.add(this.#release(entry, session, withinMs, mark));
  }

  async #release(
    entry: OwnEntry,
    session: Session,
    withinMs: number,
    mark: LeaveOptions["mark"],
  ): Promise<boolean> {
    const { clock, timers, random } = this.#runtime;
    const startMs = clock.nowMs();
    const endMs = startMs + withinMs;
    const backoff = new Backoff(random, RETRY_MS);
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        const limitMs = Math.min(CALL_MS, Math.max(1, endMs - clock.nowMs()));
        const queue = this.#queues.at(entry.lock);
        const next = mark ? undefined : (queue?.nextAfter(entry) ?? undefined);
        const look = queue !== undefined && !next;
        const { wasThere } = await this.#leave(entry, session, { mark, look, next }, limitMs);
        if (wasThere || !isRepeated) return wasThere;
        // The entry is absent after a try with unknown outcome. Either that try removed it and left
        // the mark, or someone else had removed it before and there is no mark.
        const mustShow = mark && clock.nowMs() - startMs < mark.ttlMs;
        return mustShow ? await this.#hasLeftMark(entry, limitMs) : true;
      } catch (error) {
        const pauseMs = backoff.nextMs();
        if (isFinal(error) || clock.nowMs() + pauseMs >= endMs) {
          void this.#underWay.add(this.#leaveAtLast(entry, session));
          throw error;
        }
        if (session.isLost) return false;
        // The store is closing, so it stays unknown whether the entry was removed.
        if (session.isOver) throw error;
        await pause(timers, pauseMs);
      }
    }
  }

  async #hasLeftMark(entry: OwnEntry, limitMs: number): Promise<boolean> {
    const { entries, mark } = await this.#sequencer.list(entry.lock, "plain", limitMs);
    // A deposed leader may still list the queue as it was before the entry left.
    if (!entries.some((one) => isSame(one, entry))) return mark?.token === entry.token;
    const message = "The queue was read at a server that is behind.";
    throw new StoreError(message, { outcome: "unknown" });
  }

  /** Ends a wait. Resolves within `SOON_MS`; the removal goes on after that if necessary. */
  async withdraw(entry: OwnEntry, session: Session): Promise<void> {
    const leaving = this.#underWay.add(this.#leaveAtLast(entry, session));
    await within(this.#runtime.timers, SOON_MS, leaving).catch(() => {});
  }

  async #leaveAtLast(entry: OwnEntry, session: Session): Promise<void> {
    const backoff = new Backoff(this.#runtime.random, RETRY_MS);
    while (!session.isOver) {
      try {
        return void (await this.#leave(entry, session, {}, CALL_MS));
      } catch (error) {
        if (isFinal(error)) {
          // Retrying would fail again. If the entry is still there, it ends with its session.
          session.retire();
          return session.remove(entry);
        }
        await pause(this.#runtime.timers, backoff.nextMs());
      }
    }
  }

  async #leave(
    entry: OwnEntry,
    session: Session,
    options: LeaveOptions,
    limitMs: number,
  ): Promise<Leaving> {
    const left = await session.storeSession.leave(entry, options, limitMs);
    // The whole session may have ended. Renew it now, so that its other entries find out.
    if (!left.wasThere && entry.token !== 0n) session.renew(true).catch(() => {});
    session.remove(entry);
    const queue = this.#queues.at(entry.lock);
    const { next } = options;
    const { listing, nextAt } = left;
    if (listing) queue?.see(listing);
    else queue?.left(entry, next && nextAt ? { entry: next, at: nextAt } : null);
    return left;
  }
}
