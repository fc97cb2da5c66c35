/**
 * Processes contend for one mutex of a store. Every third of a second one of them is killed or
 * stopped: mostly a waiter, sometimes the holder. A store that offers the lock to each dead waiter
 * grants almost nothing meanwhile.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlledProcess } from "../faults/process.js";
import { randomOf } from "../fixtures/seed.js";
import { Contenders } from "../stores/contenders.js";

const PROCESSES = 8;
const FAULT_EVERY_MS = 333;
const STOP_MS = 1_000;
/** One fault in four is a stop; the others are kills. */
const FAULTS_PER_STOP = 4;

export interface TortureOptions {
  readonly ttlMs: number;
  readonly lastsMs: number;
}

export interface TortureReport {
  /** How many grants some process trusted. */
  readonly grants: number;
  /** The longest time without a new grant. */
  readonly largestGapMs: number;
}

/**
 * Tortures the store of a URL. Fails if two processes trusted their leases at the same time, or if
 * tokens did not rise.
 */
export async function torture(
  url: string,
  { ttlMs, lastsMs }: TortureOptions,
): Promise<TortureReport> {
  await using contenders = new Contenders(url, "torture");
  const start = (): Promise<ControlledProcess> => contenders.start(1, ttlMs);
  const running = new Set(await Promise.all(Array.from({ length: PROCESSES }, start)));
  await contenders.untilMoreTurns();
  // The same faults for all stores that are compared.
  const random = randomOf("torture");
  const below = (limit: number): number => Math.floor(random() * limit);
  const underWay: Promise<unknown>[] = [];
  const startUs = nowUs();
  while (nowUs() - startUs < lastsMs * 1000) {
    const victim = [...running][below(running.size)];
    const isStop = below(FAULTS_PER_STOP) === 0;
    // One process at least goes on.
    if (victim && running.size > 1) {
      running.delete(victim);
      underWay.push(
        (isStop ? stop(victim) : replace(victim, start)).then((one) => running.add(one)),
      );
    }
    await sleep(FAULT_EVERY_MS);
  }
  const endUs = nowUs();
  await Promise.all(underWay);
  await contenders.end();
  contenders.expectOneAtATime();
  const turnsUs = contenders.turnsUs().filter((us) => us > startUs && us < endUs);
  const gapsUs = [...turnsUs, endUs].map((us, at) => us - (turnsUs[at - 1] ?? startUs));
  return { grants: turnsUs.length, largestGapMs: Math.round(Math.max(...gapsUs) / 1000) };
}

async function stop(victim: ControlledProcess): Promise<ControlledProcess> {
  await victim.pause();
  await sleep(STOP_MS);
  victim.resume();
  return victim;
}

async function replace(
  victim: ControlledProcess,
  start: () => Promise<ControlledProcess>,
): Promise<ControlledProcess> {
  await victim.kill();
  return await start();
}

/** The clock of the contenders. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n);
}
