import { type Clock, monotonicClock, suspendAware } from "./clock.js";
import { type Random, systemRandom } from "./random.js";
import { systemTimers, type Timers } from "./timers.js";

/**
 * The one way to time and chance. The simulation has a twin of it, so nothing else may ask the
 * system.
 */
export interface Port {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
}

/** For stores that keep leases by the monotonic clock of this machine. */
export const localPort: Port = {
  clock: monotonicClock,
  timers: systemTimers,
  random: systemRandom,
};

/** For stores across the network: time that also counts the sleep of this machine. */
export function networkPort(): Port {
  return { ...localPort, clock: suspendAware() };
}
