import { setTimeout as sleep } from "node:timers/promises";
import { endWithParent } from "./forked.js";

/**
 * The work of a worker process: it contends for one name with several tasks for a while, then
 * reports its holds. Times are of the monotonic clock, which all processes of a machine share.
 */
export interface Turns {
  readonly lock: string;
  readonly workers: number;
  readonly forMs: number;
  /** How long a holder keeps the lock, turn by turn; empty: not at all. */
  readonly holdMs: readonly number[];
  /** How long a worker rests after a release before it asks again. Default 0. */
  readonly restMs?: number;
}

/** One hold: when it was asked for, when it began, when its release was called. */
export type Hold = readonly [askedMs: number, heldMs: number, releasedMs: number];

export interface Report {
  readonly holds: readonly (readonly Hold[])[];
  /** The CPU time of this process while it took turns. */
  readonly cpuUs: number;
}

/** A process that takes locks; `acquire` resolves with the release. */
export interface Locker {
  acquire(name: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

/** Takes and gives back one lock, again and again. */
export async function pairsOf(locker: Locker, lock: string, pairs: number): Promise<void> {
  for (let pair = 0; pair < pairs; pair += 1) {
    const release = await locker.acquire(lock);
    await release();
  }
}

/** The same by many tasks at once, each with a name of its own. */
export async function pairsAtOnce(
  locker: Locker,
  lock: string,
  tasks: number,
  pairs: number,
): Promise<void> {
  const task = (_: unknown, index: number) => pairsOf(locker, `${lock}:${index}`, pairs);
  await Promise.all(Array.from({ length: tasks }, task));
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Says that it is ready, takes turns from the word "go" on, and reports. */
export async function takeTurns(locker: Locker, turns: Turns): Promise<void> {
  endWithParent();
  process.send?.("ready");
  await new Promise((resume) => process.once("message", resume));
  const cpuBefore = process.cpuUsage();
  const untilMs = nowMs() + turns.forMs;
  const holds = await Promise.all(
    Array.from({ length: turns.workers }, async () => {
      const own: Hold[] = [];
      while (nowMs() < untilMs) {
        const askedMs = nowMs();
        const release = await locker.acquire(turns.lock);
        const heldMs = nowMs();
        const holdMs = turns.holdMs[own.length % turns.holdMs.length] ?? 0;
        if (holdMs > 0) await sleep(holdMs);
        own.push([askedMs, heldMs, nowMs()]);
        await release();
        if (turns.restMs) await sleep(turns.restMs);
      }
      return own;
    }),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  await locker.close();
  process.send?.({ holds, cpuUs: user + system } satisfies Report, () => process.disconnect());
}
