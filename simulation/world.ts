/**
 * Simulated time: a queue of things that will happen, taken one after the other. Between two of
 * them all promises are run dry, so that what a program does at one instant is done before the next
 * begins.
 */
import { nextTick } from "node:process";
import { Heap, type HeapItem } from "../src/time/heap.js";

/** A program that runs in the world, and may be unable to run for a while, or for ever. */
export interface Inhabitant {
  readonly isAlive: boolean;
  /** World time before which it does nothing. */
  readonly frozenUntilMs: number;
  /** Where something that happened while it was frozen stands in the order of its awakening. */
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
 * The queue of ticks is only served when no promise is left to run: no turn of a real loop needed.
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

  /** How many things have happened. */
  get steps(): number {
    return this.#steps;
  }

  /** For `inhabitant`, or for nobody: a thing that happens whoever is frozen. */
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

  /** Lets things happen until `isOver`, at most until `untilMs` and `mostSteps`. */
  async run(untilMs: number, mostSteps: number, isOver: () => boolean): Promise<void> {
    for (let next = this.#queue.peek(); next; next = this.#queue.peek()) {
      if (next.atMs > untilMs || this.#steps >= mostSteps || isOver()) return;
      this.#queue.remove(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      await this.#happen(next);
    }
  }

  async #happen(scheduled: Scheduled): Promise<void> {
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
