/**
 * Simulated time: a queue of tasks, run one after the other. Between two tasks all promises are
 * settled, so that a program finishes what it does at one instant before the next begins.
 */
import { nextTick } from "node:process";
import { Heap, type HeapItem } from "../src/time/heap.js";

/** A program that runs in the world, and may be unable to run for a while, or for ever. */
export interface Inhabitant {
  readonly isAlive: boolean;
  /** World time before which it does nothing. */
  readonly frozenUntilMs: number;
  /** The order in which tasks that fell due while it was frozen run when it wakes up. */
  awakeningRank(kind: Kind): number;
  /** Runs one turn of its event loop: the task, all promises, and what was asked for soon. */
  turn(task: () => void, drain: () => Promise<void>): Promise<void>;
}

export type Kind = "timer" | "message";

export class Scheduled implements HeapItem {
  atMs: number;
  rank = 0;
  order: number;
  readonly kind: Kind;
  readonly inhabitant: Inhabitant | null;
  readonly task: () => void;
  heapIndex = -1;

  constructor(
    atMs: number,
    order: number,
    kind: Kind,
    inhabitant: Inhabitant | null,
    task: () => void,
  ) {
    this.atMs = atMs;
    this.order = order;
    this.kind = kind;
    this.inhabitant = inhabitant;
    this.task = task;
  }
}

/**
 * Node runs `nextTick` callbacks only when no promise is left to run: this takes no turn of the
 * real event loop.
 */
function drain(): Promise<void> {
  return new Promise((resolve) => nextTick(resolve));
}

export class World {
  readonly #queue = new Heap<Scheduled>(isBefore);
  #nowMs = 0;
  #order = 0;
  #steps = 0;

  get nowMs(): number {
    return this.#nowMs;
  }

  /** How many tasks have run. */
  get steps(): number {
    return this.#steps;
  }

  /** A task of `inhabitant`; null for one that runs even while all programs are frozen. */
  schedule(
    atMs: number,
    inhabitant: Inhabitant | null,
    task: () => void,
    kind: Kind = "message",
  ): Scheduled {
    const scheduled = new Scheduled(
      Math.max(atMs, this.#nowMs),
      this.#order++,
      kind,
      inhabitant,
      task,
    );
    this.#queue.push(scheduled);
    return scheduled;
  }

  cancel(scheduled: Scheduled): void {
    this.#queue.remove(scheduled);
  }

  postpone(scheduled: Scheduled, byMs: number): void {
    scheduled.atMs += byMs;
    this.#queue.update(scheduled);
  }

  /** Runs tasks until `isOver`, at most until `untilMs`, and at most `mostSteps`. */
  async run(untilMs: number, mostSteps: number, isOver: () => boolean): Promise<void> {
    for (let next = this.#queue.peek(); next; next = this.#queue.peek()) {
      if (next.atMs > untilMs || this.#steps >= mostSteps || isOver()) return;
      this.#queue.remove(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      await this.#runTask(next);
    }
  }

  async #runTask(scheduled: Scheduled): Promise<void> {
    const { inhabitant, task, kind } = scheduled;
    if (!inhabitant) {
      this.#steps += 1;
      return task();
    }
    if (!inhabitant.isAlive) return;
    if (inhabitant.frozenUntilMs > this.#nowMs) {
      scheduled.atMs = inhabitant.frozenUntilMs;
      scheduled.rank = inhabitant.awakeningRank(kind);
      this.#queue.push(scheduled);
      return;
    }
    this.#steps += 1;
    await inhabitant.turn(task, drain);
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.rank !== b.rank ? a.rank < b.rank : a.order < b.order;
}
