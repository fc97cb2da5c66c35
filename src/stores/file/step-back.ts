import type { Command } from "../../rules/ledger-command.js";
import { machinePort } from "./machine-port.js";

/** The next holder has its confirm in the file by then, unless it has other things to do. */
const STEP_BACK_MS = 1;

/**
 * After handing a lock off to another process, this process waits 1 ms before it asks for the lock
 * again. It cannot get the lock now, and its request would delay the confirm of the next holder in
 * the file, or on a busy machine keep that process from running at all.
 */
export class StepBack {
  /** The name that went to another process last, and when. */
  #key: string | undefined;
  #handedMs = 0;
  /** Until it is over, requests for that name wait, so that they keep their order. */
  #pending: Promise<void> | undefined;

  onHandedOver(key: string): void {
    if (this.#pending) return;
    this.#key = key;
    this.#handedMs = machinePort.clock.nowMs();
  }

  /** The wait before these commands may run; undefined when there is none. */
  before(commands: readonly Command[]): Promise<void> | undefined {
    if (this.#key === undefined) return undefined;
    if (this.#pending) return commands.some(this.#isFor) ? this.#pending : undefined;
    if (machinePort.clock.nowMs() - this.#handedMs >= STEP_BACK_MS) {
      this.#key = undefined;
      return undefined;
    }
    // A batch with other commands is not delayed.
    if (commands.length > 1 || !commands.some(this.#isFor)) return undefined;
    this.#pending = new Promise((resume) => {
      machinePort.timers.after(STEP_BACK_MS, resume, true);
    });
    void this.#pending.then(() => {
      this.#pending = undefined;
    });
    return this.#pending;
  }

  readonly #isFor = (command: Command): boolean =>
    command.type === "acquire" && command.enqueue && command.key === this.#key;
}
