import { type ControlledProcess, startProcess } from "../test/faults/process.js";

/**
 * The processes in which subjects run. To start one and to load a client costs more processor time
 * than most trials, so a process that a trial left whole serves the next one, too.
 */
export class Processes implements AsyncDisposable {
  readonly #idle: ControlledProcess[] = [];

  take(): ControlledProcess {
    const idle = this.#idle.pop();
    if (idle?.running) return idle;
    return startProcess(new URL("./worker.js", import.meta.url));
  }

  giveBack(process: ControlledProcess): void {
    this.#idle.push(process);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#idle.map((process) => process[Symbol.asyncDispose]()));
  }
}
