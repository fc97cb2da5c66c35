/**
 * The release of grants at the exit of a process. Its event loop has ended by then, but the thread
 * of the stores runs on until the last listener of `exit` returns. Our listener ends all grants in
 * this thread, tells the other one to release them, and waits for it in shared memory, for a second
 * at most. Listeners that run before it still hold their leases, which the thread renews; listeners
 * that run after it find them lost. At no time does this thread rely on a grant that the other one
 * may have released.
 */
import { localRuntime } from "../time/runtime.js";

/** The exit of a process takes no longer than this for the releases of all its stores. */
export const EXIT_MS = 1_000;

/** Memory in which one thread waits for the other. */
export class ExitSignal {
  readonly memory: SharedArrayBuffer;
  readonly #cell: Int32Array;

  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#cell = new Int32Array(memory);
  }

  /** Blocks this thread until the other one has released, or the time has passed. */
  await(limitMs: number): void {
    Atomics.wait(this.#cell, 0, 0, limitMs);
  }

  /** All is released that can be. */
  give(): void {
    Atomics.store(this.#cell, 0, 1);
    Atomics.notify(this.#cell, 0);
  }
}

/** A store in a thread that may hold or await grants when its process exits. */
interface Releasing {
  readonly exitSignal: ExitSignal;
  /**
   * Ends the grants here, then tells the thread to release them and to give the signal. False if
   * there is nothing to release, or no thread to tell.
   */
  beginExit(): boolean;
}

const open = new Set<Releasing>();

function onExit(): void {
  const { clock } = localRuntime;
  const untilMs = clock.nowMs() + EXIT_MS;
  const releasing = [...open].filter((store) => store.beginExit());
  for (const { exitSignal } of releasing) exitSignal.await(Math.max(0, untilMs - clock.nowMs()));
}

/** From now on, the grants of the store are released when the process exits. */
export function releaseAtExit(store: Releasing): void {
  // One listener for all stores: Node warns of many.
  if (open.size === 0) process.on("exit", onExit);
  open.add(store);
}

/** The store is closed. */
export function forgetAtExit(store: Releasing): void {
  open.delete(store);
  if (open.size === 0) process.off("exit", onExit);
}
