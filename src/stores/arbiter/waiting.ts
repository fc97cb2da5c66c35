import type { Touch } from "../../rules/ledger-command.js";
import type { Port } from "../../time/port.js";
import type { Timer } from "../../time/timers.js";
import type { Acquisition } from "./acquisition.js";
import type { Answer } from "./channel.js";
import { Vigil, type VigilDuties } from "./vigil.js";

/** What the store around it does for those who wait. */
export interface WaitingDuties {
  readonly port: Port;
  /** Tells the store that this client lives, and asks what it missed. */
  touch(key: string): Answer<Touch> | Promise<Answer<Touch>>;
  /** The store granted to an owner that asks for nothing any more. */
  onUnclaimed(key: string, owner: string): void;
}

/** The acquisitions of this client that are under way, and its watch at the names they wait for. */
export class Waiting {
  readonly #duties: WaitingDuties;
  readonly #vigilDuties: VigilDuties;
  readonly #byOwner = new Map<string, Acquisition>();
  readonly #vigils = new Map<string, Vigil>();
  /** Names whose last handoff is to be checked once. */
  readonly #checks = new Map<string, Timer>();
  /** Names where the store has more waiters to serve. */
  readonly #goingOn = new Set<string>();
  #isOver = false;

  constructor(duties: WaitingDuties) {
    this.#duties = duties;
    this.#vigilDuties = {
      port: duties.port,
      touch: (key) => duties.touch(key),
      onTouched: (key, answer) => this.#onTouched(key, answer),
    };
  }

  enter(acquisition: Acquisition): void {
    this.#byOwner.set(acquisition.owner, acquisition);
  }

  of(owner: string): Acquisition | undefined {
    return this.#byOwner.get(owner);
  }

  /** It stands in the queue: its place is kept, and the holder's end is watched. */
  queue(acquisition: Acquisition, ahead: number | null, dueMs: number): void {
    const { key } = acquisition;
    let vigil = this.#vigils.get(key);
    if (!vigil) {
      vigil = new Vigil(key, this.#vigilDuties);
      this.#vigils.set(key, vigil);
    }
    vigil.add(acquisition, ahead, dueMs);
  }

  leave(acquisition: Acquisition): void {
    const { key, owner } = acquisition;
    this.#byOwner.delete(owner);
    const vigil = this.#vigils.get(key);
    vigil?.remove(acquisition);
    if (vigil?.isIdle) this.#vigils.delete(key);
  }

  /** Pushes may have been missed: every name is asked for what became of it. */
  touchAll(): void {
    for (const vigil of this.#vigils.values()) void vigil.touch();
  }

  /**
   * A handoff may have gone to a process that died: whoever released looks once whether it took.
   */
  checkLater(key: string, delayMs: number): void {
    if (this.#isOver || this.#checks.has(key)) return;
    const timer = this.#duties.port.timers.after(delayMs + 1, () => {
      this.#checks.delete(key);
      void this.#look(key);
    });
    this.#checks.set(key, timer);
  }

  /** The store serves in slices: the client that released touches until there is no more to do. */
  goOn(key: string): void {
    if (this.#isOver || this.#goingOn.has(key)) return;
    this.#goingOn.add(key);
    this.#duties.port.timers.after(0, () => {
      this.#goingOn.delete(key);
      void this.#look(key);
    });
  }

  end(): void {
    this.#isOver = true;
    for (const acquisition of [...this.#byOwner.values()]) acquisition.giveUp();
    for (const timer of this.#checks.values()) timer.cancel();
  }

  async #look(key: string): Promise<void> {
    try {
      const answer = await this.#duties.touch(key);
      this.#onTouched(key, answer);
      if (answer.reply.more) this.goOn(key);
    } catch {
      // It was only a look: the waiters themselves ask again, too.
    }
  }

  #onTouched(key: string, { reply, sentMs, nowUs }: Answer<Touch>): void {
    for (const grant of reply.grants) {
      const acquisition = this.#byOwner.get(grant.owner);
      if (acquisition) acquisition.onMissedGrant(grant, sentMs, nowUs);
      else this.#duties.onUnclaimed(key, grant.owner);
    }
  }
}
