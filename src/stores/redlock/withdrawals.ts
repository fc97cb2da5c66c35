import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import type { RedlockNode } from "./redlock-node.js";
import { releaseArgs } from "./requests.js";
import type { Withdrawal } from "./surroundings.js";
import { decodeRelease } from "./vote.js";

const RETRY_MS = 100;
/** A node that is asked again this often and long has let its keys expire by then. */
const CALL_MS = 5_000;
const LEAST_CLEANUP_MS = 5_000;
const LONGEST_CLEANUP_MS = 30_000;

/**
 * Gives back what an attempt may have taken: on all nodes, also those that never answered. A node
 * that cannot be told is told again, until what it may keep would be over anyway.
 */
export class Withdrawals {
  readonly #port: Port;
  readonly #nodes: readonly RedlockNode[];
  readonly #reserveMs: number;
  readonly #underWay = new Set<Promise<void>>();
  #isClosed = false;

  constructor(port: Port, nodes: readonly RedlockNode[], reserveMs: number) {
    this.#port = port;
    this.#nodes = nodes;
    this.#reserveMs = reserveMs;
  }

  withdraw(withdrawal: Withdrawal): void {
    const { keys, owner, ballot, waiter, since } = withdrawal;
    const args = releaseArgs(owner, ballot, this.#reserveMs);
    if (waiter !== "") args.push("0", "", waiter, since);
    for (const node of this.#nodes) this.#track(this.#tell(node, keys, args, withdrawal.ttlMs));
  }

  /** One node that missed a release: it is told again, and nobody waits for it. */
  retry(node: RedlockNode, keys: readonly string[], args: readonly string[], ttlMs: number): void {
    this.#track(this.#tell(node, keys, args, ttlMs));
  }

  /** Resolves when all nodes that answer at all have answered; nothing is tried again then. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const { timers } = this.#port;
    await within(timers, this.#reserveMs, Promise.all(this.#underWay)).catch(() => {});
  }

  #track(told: Promise<void>): void {
    this.#underWay.add(told);
    void told.finally(() => this.#underWay.delete(told));
  }

  async #tell(
    node: RedlockNode,
    keys: readonly string[],
    args: readonly string[],
    ttlMs: number,
  ): Promise<void> {
    const { clock } = this.#port;
    const cleanupMs = Math.min(Math.max(ttlMs, LEAST_CLEANUP_MS), LONGEST_CLEANUP_MS);
    const untilMs = clock.nowMs() + cleanupMs;
    for (let failures = 1; ; failures += 1) {
      try {
        return void decodeRelease(await this.#answer(node.ask(keys, args)));
      } catch {
        if (this.#isClosed || clock.nowMs() >= untilMs) return;
        await new Promise<void>((go) => this.#port.timers.after(RETRY_MS * failures, go));
        if (this.#isClosed) return;
      }
    }
  }

  /** Bounded, but no reason for the process to stay. */
  #answer(asked: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = this.#port.timers.after(CALL_MS, () => reject(new Error("No answer.")));
      asked.finally(() => timer.cancel()).then(resolve, reject);
    });
  }
}
