/**
 * A simulated process with a clock, timers and chance of its own. It may be paused, block its event
 * loop, sleep with its machine, or crash. It runs the real code, which sees all of this only
 * through the runtime to time.
 */
import { type Clock, suspendAware } from "../src/time/clock.js";
import type { Runtime } from "../src/time/runtime.js";
import type { Timer } from "../src/time/timers.js";
import type { Chance } from "./chance.js";
import type { Ended, History } from "./history.js";
import type { Inhabitant, Kind, Scheduled, World } from "./world.js";

/** Not 0, so that no code works only because its clock starts at 0. */
const START_MS = 5_000;
const WALL_US = 1_700_000_000_000_000;
const UPTIME_STEP_MS = 10;

export class SimulatedProcess implements Inhabitant {
  readonly id: string;
  readonly runtime: Runtime;
  readonly #world: World;
  readonly #history: History;
  readonly #chance: Chance;
  /** How fast its clock runs. */
  readonly rate: number;
  /** The timers that are set, and for which side. */
  readonly #timers = new Map<Scheduled, "library" | "library alive" | "program">();
  #soon: (() => void)[] = [];
  #isAlive = true;
  #frozenUntilMs = 0;
  /** How far the present turn is ahead of world time, because it blocked. */
  #aheadMs = 0;
  #blockedUntilMs = 0;
  #suspendedMs = 0;
  /** How far its wall clock is ahead of the world's. */
  #wallMs: number;
  #isBlind = false;
  #messagesFirst = false;
  #ids = 0;
  readonly #onTurnEnd: (() => void)[] = [];
  readonly #onAwake: (() => void)[] = [];
  #hasSlept = false;
  /** The ends of grants that this process was told of in the present turn. */
  #told: Ended[] = [];

  constructor(
    id: string,
    rate: number,
    world: World,
    history: History,
    chance: Chance,
    wallMs: number = 0,
  ) {
    this.id = id;
    this.#wallMs = wallMs;
    this.rate = rate;
    this.#world = world;
    this.#history = history;
    this.#chance = chance;
    this.runtime = {
      clock: this.#clock(),
      timers: {
        after: (delayMs, task, keepAlive = false) =>
          this.#after(delayMs, task, keepAlive ? "library alive" : "library"),
        soon: (task) => this.#soon.push(task),
      },
      random: {
        id: () => `${id}-${this.#ids++}`,
        fraction: () => chance.fraction(),
      },
    };
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** World time up to which its actions are already recorded: it cannot crash before. */
  get blockedUntilMs(): number {
    return this.#blockedUntilMs;
  }

  get frozenUntilMs(): number {
    return this.#frozenUntilMs;
  }

  /** World time, as far as this process has got in its turn. */
  get nowMs(): number {
    return this.#world.nowMs + this.#aheadMs;
  }

  /** The machine slept, and the clock has not noticed yet: until then its times mean nothing. */
  get isBlind(): boolean {
    return this.#isBlind;
  }

  /** Timers of the library, and those of them that keep the process from ending. */
  get timers(): { all: number; alive: number } {
    const kinds = [...this.#timers.values()].filter((kind) => kind !== "program");
    return { all: kinds.length, alive: kinds.filter((kind) => kind === "library alive").length };
  }

  /** World time at which this process's clock will show `localMs`. */
  worldMs(localMs: number): number {
    return this.nowMs + (localMs - this.runtime.clock.nowMs()) / this.rate;
  }

  /** The world time in which this process's clock moves on by `localMs`. */
  worldSpanMs(localMs: number): number {
    return localMs / this.rate;
  }

  /** Calls back at the end of every turn. */
  onTurnEnd(listener: () => void): void {
    this.#onTurnEnd.push(listener);
  }

  /** Calls back first of all when the process runs again after a pause or sleep. */
  onAwake(listener: () => void): void {
    this.#onAwake.push(listener);
  }

  /** A message says that grants have ended. */
  learn(told: Ended): void {
    this.#told.push(told);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resume) => this.#after(delayMs, resume, "program"));
  }

  /** Runs a task in this process, now or as soon as the process can run. */
  do(task: () => void): void {
    this.#world.schedule(this.#world.nowMs, this, task);
  }

  awakeningRank(kind: Kind): number {
    return (kind === "message") === this.#messagesFirst ? 1 : 2;
  }

  async turn(task: () => void, drain: () => Promise<void>): Promise<void> {
    // Mutants read the clock where the code has none at hand.
    Object.assign(globalThis, { simulatedClock: this.runtime.clock });
    if (this.#hasSlept) {
      this.#hasSlept = false;
      for (const listener of this.#onAwake) listener();
    }
    task();
    await drain();
    while (this.#soon.length > 0) {
      const tasks = this.#soon;
      this.#soon = [];
      for (const next of tasks) next();
      await drain();
    }
    for (const listener of this.#onTurnEnd) listener();
    for (const told of this.#told) {
      this.#history.record(this.nowMs, { type: "told", process: this.id, ...told });
    }
    this.#told = [];
    this.#blockedUntilMs = this.nowMs;
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.nowMs);
    this.#aheadMs = 0;
  }

  /** Called by the program itself: the next statement of the program runs that much later. */
  block(forMs: number): void {
    this.#freeze("blocked", forMs);
    this.#aheadMs += forMs;
  }

  /** Stops the process from outside; its clock runs on. */
  pause(forMs: number): void {
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.#world.nowMs + forMs);
    this.#freeze("paused", forMs);
  }

  /** The machine sleeps: monotonic time stops, and so do all timers. */
  suspend(forMs: number): void {
    this.#frozenUntilMs = Math.max(this.#frozenUntilMs, this.#world.nowMs) + forMs;
    this.#suspendedMs += forMs;
    this.#isBlind = true;
    for (const timer of this.#timers.keys()) this.#world.postpone(timer, forMs);
    this.#freeze("suspended", this.#frozenUntilMs - this.#world.nowMs);
  }

  /** Sets the wall clock; nothing else changes. */
  setWall(aheadMs: number): void {
    this.#wallMs = aheadMs;
  }

  crash(): void {
    this.#isAlive = false;
    for (const timer of this.#timers.keys()) this.#world.cancel(timer);
    this.#timers.clear();
    this.#history.record(this.#world.nowMs, { type: "crashed", process: this.id });
  }

  #freeze(how: "paused" | "blocked" | "suspended", forMs: number): void {
    this.#messagesFirst = this.#chance.isLucky(0.5);
    this.#hasSlept = how !== "blocked" || this.#hasSlept;
    const untilMs = this.nowMs + forMs;
    this.#history.record(this.nowMs, { type: "frozen", process: this.id, untilMs, how });
  }

  #clock(): Clock {
    const localMs = (): number => START_MS + this.nowMs * this.rate;
    const monotonic = (): number => START_MS + (this.nowMs - this.#suspendedMs) * this.rate;
    const wallUs = (): number => WALL_US + Math.floor((localMs() + this.#wallMs) * 1000);
    const aware = suspendAware({ nowMs: monotonic, exactMs: monotonic, sleptMs: 0, wallUs }, () => {
      return Math.floor(localMs() / UPTIME_STEP_MS) * UPTIME_STEP_MS;
    });
    return {
      nowMs: aware.nowMs,
      exactMs: () => {
        this.#isBlind = false;
        return aware.exactMs();
      },
      get sleptMs() {
        return aware.sleptMs;
      },
      wallUs,
    };
  }

  #after(delayMs: number, task: () => void, kind: "library" | "library alive" | "program"): Timer {
    // As real timers: not below 1 ms, up to 1 ms early, and a little late.
    const realMs = Math.max(1, delayMs) / this.rate + this.#chance.between(-0.9, 1.5);
    const run = (): void => {
      this.#timers.delete(timer);
      task();
    };
    const timer = this.#world.schedule(this.nowMs + Math.max(0, realMs), this, run, "timer");
    this.#timers.set(timer, kind);
    return {
      cancel: () => {
        this.#world.cancel(timer);
        this.#timers.delete(timer);
      },
      keepAlive: (isNeeded) => {
        const next = isNeeded ? "library alive" : "library";
        if (this.#timers.has(timer)) this.#timers.set(timer, next);
      },
    };
  }
}
