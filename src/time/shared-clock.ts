import { type Clock, machineClock, type Sleep, suspendAware, systemUptimeMs } from "./clock.js";

/** The clocks of a machine. */
interface Machine {
  readonly clock: Clock;
  uptimeMs(): number;
}

/** The cells of the shared memory, in microseconds. */
const START = 0;
const SLEPT = 1;
const JUMPED = 2;
const CELLS = 3;

const thisMachine: Machine = { clock: machineClock, uptimeMs: systemUptimeMs };

/**
 * One clock for two threads. The monotonic clock of the machine is the same in both; the sleep of
 * the machine is counted in shared memory. If each thread counted by itself, one of them could
 * notice a sleep that the other did not, and a deadline of the first would be late in the second.
 */
class SharedSleep implements Sleep {
  readonly startMs: number;
  readonly #cells: BigInt64Array;

  constructor(memory: SharedArrayBuffer) {
    this.#cells = new BigInt64Array(memory);
    this.startMs = Number(this.#cells[START]) / 1000;
  }

  get sleptMs(): number {
    return this.#read(SLEPT);
  }

  set sleptMs(valueMs: number) {
    this.#raise(SLEPT, valueMs);
  }

  get jumpedMs(): number {
    return this.#read(JUMPED);
  }

  set jumpedMs(valueMs: number) {
    this.#raise(JUMPED, valueMs);
  }

  #read(cell: number): number {
    return Number(Atomics.load(this.#cells, cell)) / 1000;
  }

  #raise(cell: number, valueMs: number): void {
    const valueUs = BigInt(Math.ceil(valueMs * 1000));
    // The other thread may have noticed more in the meantime: the greater value stays.
    for (let seen = Atomics.load(this.#cells, cell); seen < valueUs; ) {
      const was = Atomics.compareExchange(this.#cells, cell, seen, valueUs);
      if (was === seen) return;
      seen = was;
    }
  }
}

/** The memory of a shared clock: one thread makes it, and hands it to the other. */
export function clockMemory(machine: Machine = thisMachine): SharedArrayBuffer {
  const memory = new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT);
  const leadMs = machine.uptimeMs() - machine.clock.nowMs();
  new BigInt64Array(memory)[START] = BigInt(Math.floor(leadMs * 1000));
  return memory;
}

/** The clock that every thread with this memory reads alike. */
export function sharedClock(memory: SharedArrayBuffer, machine: Machine = thisMachine): Clock {
  return suspendAware(machine.clock, machine.uptimeMs, new SharedSleep(memory));
}
