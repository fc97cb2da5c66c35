import { closeSync, openSync, readSync } from "node:fs";
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

const ID_BYTES = 16;
const DRAWN = Buffer.alloc(64 * ID_BYTES);
let drawn = DRAWN.length;

/**
 * Straight from the system where it has a file for that: a command that lives for a moment spends
 * most of it loading Node's cryptography otherwise.
 */
function drawId(): string {
  if (process.platform === "win32") return localPort.random.id();
  if (drawn === DRAWN.length) {
    const file = openSync("/dev/urandom", "r");
    try {
      for (drawn = 0; drawn < DRAWN.length; ) drawn += readSync(file, DRAWN, { offset: drawn });
    } finally {
      closeSync(file);
    }
    drawn = 0;
  }
  drawn += ID_BYTES;
  return DRAWN.toString("hex", drawn - ID_BYTES, drawn);
}

export const machinePort: Port = {
  ...localPort,
  random: { ...localPort.random, id: drawId },
  clock: { nowMs: machineMs, exactMs: machineMs, sleptMs: 0, wallUs: () => Date.now() * 1000 },
};
