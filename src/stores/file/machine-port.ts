import { closeSync, openSync, readSync } from "node:fs";
import { machineClock } from "../../time/clock.js";
import { localPort, type Port } from "../../time/port.js";

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

/** All processes keep leases by one clock; it stands still while the machine sleeps, as they do. */
export const machinePort: Port = {
  ...localPort,
  random: { ...localPort.random, id: drawId },
  clock: machineClock,
};
