/**
 * Takes entries out of their lines, however often that has to be asked.
 *
 * The session of an entry is shared with others, so an entry that nobody wants would live for as
 * long as they do: there is no giving up before the store has answered, or the session is over.
 * Whoever waits in the same line of this process is shown the line as the entry left it.
 */
import { StoreError } from "../../errors.js";
import type { Meta } from "../../store.js";
import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import type { Line } from "./line.js";
import type { Leaving, OwnEntry, Place } from "./sequencer.js";
import type { Session } from "./session.js";

const CALL_MS = 1_500;
const RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;
/** So long the end of a wait is held up by the removal of its entry. */
const SOON_MS = 1_000;

interface LeaveOptions {
  readonly look?: "texts" | undefined;
  readonly mark?: { readonly ttlMs: number; readonly meta: Meta } | undefined;
}

export class Withdrawals {
  readonly #port: Port;
  readonly #lineOf: (place: Place) => Line | undefined;
  readonly #pending = new Set<Promise<unknown>>();

  /** `lineOf`: the line of those who wait for the same name here, if there are any. */
  constructor(port: Port, lineOf: (place: Place) => Line | undefined) {
    this.#port = port;
    this.#lineOf = lineOf;
  }

  /** Resolves when all that are under way have ended. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#pending]);
  }

  /** The end of a lease: throws when the store could not be told in time, and goes on trying. */
  release(
    entry: OwnEntry,
    session: Session,
    withinMs: number,
    mark: LeaveOptions["mark"],
  ): Promise<boolean> {
    return this.#underWay(this.#release(entry, session, withinMs, mark));
  }

  async #release(
    entry: OwnEntry,
    session: Session,
    withinMs: number,
    mark: LeaveOptions["mark"],
  ): Promise<boolean> {
    const { clock } = this.#port;
    const endMs = clock.nowMs() + withinMs;
    for (let failures = 0; ; ) {
      try {
        const limitMs = Math.min(CALL_MS, Math.max(1, endMs - clock.nowMs()));
        const { wasThere } = await this.#leave(entry, session, { mark }, limitMs);
        // Absent after a try of unknown outcome: that try removed it, for nobody else could yet.
        return wasThere || failures > 0;
      } catch (error) {
        failures += 1;
        const pauseMs = pauseAfter(failures);
        const isFinal = error instanceof StoreError && !error.retryable;
        if (isFinal || clock.nowMs() + pauseMs >= endMs) {
          void this.withdraw(entry, session, false);
          throw error;
        }
        if (session.isLost) return false;
        // The store closes: what became of the release is not known.
        if (session.isOver) throw error;
        await this.#pause(pauseMs);
      }
    }
  }

  /**
   * The end of a wait: what is seen of the line, if it is soon; with texts where they are asked
   * for.
   */
  async withdraw(entry: OwnEntry, session: Session, isAsked: boolean): Promise<Leaving | null> {
    const leaving = this.#underWay(
      this.#leaveAtLast(entry, session, isAsked ? "texts" : undefined),
    );
    return within(this.#port.timers, SOON_MS, leaving).catch(() => null);
  }

  #underWay<T>(work: Promise<T>): Promise<T> {
    this.#pending.add(work);
    const end = (): void => void this.#pending.delete(work);
    work.then(end, end);
    return work;
  }

  async #leaveAtLast(
    entry: OwnEntry,
    session: Session,
    look: "texts" | undefined,
  ): Promise<Leaving | null> {
    for (let failures = 1; !session.isOver; failures += 1) {
      try {
        return await this.#leave(entry, session, { look }, CALL_MS);
      } catch (error) {
        if (error instanceof StoreError && !error.retryable) {
          // To ask again would not help: if the entry is there, it ends with its session.
          session.retire();
          session.remove(entry);
          return null;
        }
        await this.#pause(pauseAfter(failures));
      }
    }
    return null;
  }

  async #leave(
    entry: OwnEntry,
    session: Session,
    { look, mark }: LeaveOptions,
    limitMs: number,
  ): Promise<Leaving> {
    const line = this.#lineOf(entry.place);
    const asked = look ?? (line && line.size > 0 ? "plain" : undefined);
    const left = await session.link.leave(entry, { look: asked, mark }, limitMs);
    session.remove(entry);
    if (left.listing) line?.see(left.listing);
    return left;
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resume) => this.#port.timers.after(delayMs, resume));
  }
}

function pauseAfter(failures: number): number {
  return Math.min(RETRY_MS * failures, LONGEST_RETRY_MS);
}
