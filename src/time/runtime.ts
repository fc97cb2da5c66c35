import { type Clock, monotonicClock, suspendAware } from "./clock.js";
import { type Random, systemRandom } from "./random.js";
import { systemTimers, type Timers } from "./timers.js";

/**
 * The only source of time and chance. The simulation replaces it, so no other code may ask the
 * system.
 */
export interface Runtime {
  /** The time that deadlines are counted in. */
  readonly clock: Clock;
  /** Calls back later. */
  readonly timers: Timers;
  /** Ids and jitter. */
  readonly random: Random;
}

/** For stores that keep leases by the monotonic clock of this machine. */
export const localRuntime: Runtime = {
  clock: monotonicClock,
  timers: systemTimers,
  random: systemRandom,
};

let threadClock: Clock | undefined;

/** Gives all stores across the network that this thread opens the clock of another thread. */
export function useClock(clock: Clock): void {
  threadClock = clock;
}

/** For stores across the network: time that also counts the sleep of this machine. */
export function networkRuntime(): Runtime {
  return { ...localRuntime, clock: threadClock ?? suspendAware() };
}
