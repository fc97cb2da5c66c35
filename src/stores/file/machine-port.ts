import { localPort, type Port } from "../../time/port.js";

/**
 * Time that all processes of this machine share: `process.hrtime` is the system's monotonic clock
 * itself, while `performance.now()` counts from the start of each process. It stands still while
 * the machine sleeps, and so do all leases kept by it.
 */
function machineMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}

export const machinePort: Port = {
  ...localPort,
  clock: { nowMs: machineMs, exactMs: machineMs, wallUs: () => Date.now() * 1000 },
};
