import { Holdfast } from "../../src/api/holdfast.js";
import {
  type ServedDashboard,
  type ServeOptions,
  serveDashboard,
} from "../../src/dashboard/index.js";
import type { Lease } from "../../src/lease/lease.js";
import { memoryStore } from "../../src/stores/memory/index.js";

const HOUR_MS = 3_600_000;

/** Locks in memory with a dashboard, as a browser sees them. */
export class Stage implements AsyncDisposable {
  readonly locks: Holdfast;
  readonly #waits = new AbortController();
  readonly board: ServedDashboard;

  private constructor(locks: Holdfast, board: ServedDashboard) {
    this.locks = locks;
    this.board = board;
  }

  static async open(options: ServeOptions = {}): Promise<Stage> {
    const locks = new Holdfast(memoryStore(), { ttlMs: HOUR_MS, fairness: "strict" });
    return new Stage(locks, await serveDashboard(locks, { everyMs: 250, ...options }));
  }

  hold(name: string, meta: Record<string, unknown> = {}): Promise<Lease> {
    return this.locks.mutex(name).acquire({ meta });
  }

  /** Lets so many calls wait for a lock that is held. */
  async queue(name: string, count: number, meta: Record<string, unknown> = {}): Promise<void> {
    const { signal } = this.#waits;
    for (let index = 0; index < count; index += 1) {
      const options = { waitMs: HOUR_MS, signal, meta: { ...meta, pid: 4_000 + index } };
      this.locks
        .mutex(name)
        .acquire(options)
        .catch(() => {});
    }
    await new Promise((resolve) => setImmediate(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#waits.abort();
    await this.board.close();
    await this.locks.close();
  }
}
