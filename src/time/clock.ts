import { uptime } from "node:os";

/** Local time. Leases are judged by it alone, so it never steps and never runs backwards. */
export interface Clock {
  /**
   * Milliseconds since an arbitrary start; cheap, and blind to a suspend that was not noticed yet.
   */
  nowMs(): number;
  /**
   * The same time with every suspend of the machine counted; asks the system, for answers that
   * matter.
   */
  exactMs(): number;
  /** How much of it the machine slept, as far as that was noticed: timers are late by as much. */
  readonly sleptMs: number;
  /**
   * The wall clock in whole microseconds: a floor for tokens and a date for people, never a
   * deadline.
   */
  wallUs(): number;
}

const monotonicMs = (): number => performance.now();

/**
 * Monotonic time alone: right for stores whose leases are kept by this very clock (memory, file).
 */
export const monotonicClock: Clock = {
  nowMs: monotonicMs,
  exactMs: monotonicMs,
  sleptMs: 0,
  wallUs: () => Date.now() * 1000,
};

/**
 * The monotonic clock of the system itself: the same in all threads and all processes of this
 * machine, while `performance.now()` counts from the start of each thread. It stands still while
 * the machine sleeps.
 */
function machineMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

/** Monotonic time that all threads and processes of this machine share. */
export const machineClock: Clock = { ...monotonicClock, nowMs: machineMs, exactMs: machineMs };

/** The sleep of the machine, as one thread counts it, or several threads together. */
export interface Sleep {
  /** How far uptime was ahead of the monotonic clock when the count began. */
  readonly startMs: number;
  /** Since then by the uptime, as far as it was noticed; it only ever grows. */
  sleptMs: number;
  /**
   * Since then by jumps of the wall clock, where the uptime looks too coarse; it only ever grows. A
   * clock that was set looks the same. In one count with `sleptMs` that false sleep would hide as
   * much real sleep from the next comparison with the uptime.
   */
  jumpedMs: number;
}

/** `os.uptime()` has a resolution of 10 ms, so a smaller difference than two steps says nothing. */
const UPTIME_STEP_MS = 10;

/**
 * Bun, Deno and Node on macOS tell the uptime in whole seconds, too coarse for a lease: there every
 * jump of the wall clock ahead counts as sleep. If the clock was set, leases end early.
 */
const isWholeSeconds = (uptimeMs: number): boolean => Number.isInteger(uptimeMs / 1000);

/** So long after a whole second, an uptime in steps of 10 ms has a fraction. */
function isBetweenSeconds(passedMs: number): boolean {
  const partMs = passedMs % 1000;
  return partMs > 2 * UPTIME_STEP_MS && partMs < 1000 - 2 * UPTIME_STEP_MS;
}

export const systemUptimeMs = (): number => uptime() * 1000;

/** The wall clock follows the monotonic one this closely, unless it is set or the machine slept. */
const WALL_JUMP_MS = 4;

/**
 * Monotonic time stops while the machine sleeps, a lease in a store across the network does not.
 * `uptimeMs` counts the sleep: what it gained on the monotonic clock since the start is added,
 * rounded up, so that a lease ends early rather than late. Asking it is slow; but no machine sleeps
 * without its wall clock running ahead of the monotonic one, so it is asked only after those moved
 * apart.
 */
export function suspendAware(
  monotonic: Clock = monotonicClock,
  uptimeMs: () => number = systemUptimeMs,
  shared?: Sleep,
): Clock {
  const firstUptimeMs = uptimeMs();
  const sleep = shared ?? {
    startMs: firstUptimeMs - monotonic.nowMs(),
    sleptMs: 0,
    jumpedMs: 0,
  };
  // An uptime in steps of 10 ms is whole seconds once in a hundred readings. One fraction decides.
  let isCoarse = isWholeSeconds(firstUptimeMs);
  let isUndecided = isCoarse;
  const firstMs = monotonic.nowMs();
  // A count that began before may lack a sleep: the first look asks.
  let wallLeadMs = shared
    ? Number.POSITIVE_INFINITY
    : monotonic.wallUs() / 1000 - monotonic.nowMs();
  const sleptMs = (): number => sleep.sleptMs + sleep.jumpedMs;
  return {
    nowMs: () => monotonic.nowMs() + sleptMs(),
    exactMs() {
      const nowMs = monotonic.nowMs();
      if (isUndecided && isBetweenSeconds(nowMs - firstMs)) {
        isUndecided = false;
        isCoarse &&= isWholeSeconds(uptimeMs());
      }
      const leadMs = monotonic.wallUs() / 1000 - nowMs;
      const jumpMs = leadMs - wallLeadMs;
      if (Math.abs(jumpMs) > WALL_JUMP_MS) {
        wallLeadMs = leadMs;
        const nowUptimeMs = uptimeMs();
        const gainedMs = nowUptimeMs - nowMs - sleep.startMs;
        isCoarse &&= isWholeSeconds(nowUptimeMs);
        // rule: set-wall-clock-is-no-sleep
        if (isCoarse && Number.isFinite(jumpMs)) {
          sleep.jumpedMs += Math.max(0, jumpMs);
        } else if (gainedMs > sleep.sleptMs + 2 * UPTIME_STEP_MS) {
          sleep.sleptMs = gainedMs + UPTIME_STEP_MS;
        }
      }
      return nowMs + sleptMs();
    },
    get sleptMs() {
      return sleptMs();
    },
    wallUs: () => monotonic.wallUs(),
  };
}
