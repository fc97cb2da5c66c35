/**
 * A worker process: contends for one name with several tasks for a while, then reports what it saw.
 * Times are of the monotonic clock, which all processes of a machine share.
 */
import { candidate } from "./candidates.js";

export interface Order {
  readonly candidate: string;
  readonly port: number;
  readonly lock: string;
  readonly workers: number;
  readonly forMs: number;
  /** How long each holder keeps the lock, so that the others are surely waiting. */
  readonly holdMs: number;
}

/** One hold: when it was asked for, when it began, when its release was called. */
export type Hold = readonly [askedMs: number, heldMs: number, releasedMs: number];

export interface Report {
  readonly holds: readonly (readonly Hold[])[];
}

function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

async function work(order: Order): Promise<Report> {
  const locker = await candidate(order.candidate).open(order.port);
  process.send?.("ready");
  await new Promise((resume) => process.once("message", resume));
  const untilMs = nowMs() + order.forMs;
  const holds = await Promise.all(
    Array.from({ length: order.workers }, async () => {
      const own: Hold[] = [];
      while (nowMs() < untilMs) {
        const askedMs = nowMs();
        const release = await locker.acquire(order.lock);
        const heldMs = nowMs();
        if (order.holdMs > 0) await new Promise((resume) => setTimeout(resume, order.holdMs));
        own.push([askedMs, heldMs, nowMs()]);
        await release();
      }
      return own;
    }),
  );
  await locker.close();
  return { holds };
}

const order = JSON.parse(process.argv[2] ?? "{}") as Order;
process.send?.(await work(order));
process.disconnect();
