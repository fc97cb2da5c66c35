import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Exit, OwnedProcess } from "../servers/owned-process.js";

export interface ProcessOptions {
  readonly args?: readonly string[];
  /** Environment variables, besides those of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Options of node itself. */
  readonly execArgv?: readonly string[];
}

interface Waiter {
  matches(message: unknown): boolean;
  resolve(message: unknown): void;
  reject(error: Error): void;
}

/**
 * A node process that runs a module and that a test can pause and kill. The two exchange JSON
 * messages: `process.send(message)` and `process.on("message", …)` there, `send` and `receive`
 * here.
 */
export class ControlledProcess implements AsyncDisposable {
  readonly #process = new OwnedProcess("process");
  readonly #child: ChildProcess;
  readonly #received: unknown[] = [];
  readonly #waiters = new Set<Waiter>();
  #disconnected = false;

  constructor(module: URL, { args = [], env = {}, execArgv = [] }: ProcessOptions = {}) {
    this.#child = this.#process.launch({
      command: process.execPath,
      args: [...execArgv, fileURLToPath(module), ...args],
      env: { ...process.env, ...env },
      ipc: true,
    });
    this.#child.on("message", (message) => this.#receive(message));
    // "close" comes after the last message; "exit" may come before it.
    this.#child.once("disconnect", () => {
      this.#disconnected = true;
      for (const waiter of this.#waiters) this.#reject(waiter);
      this.#waiters.clear();
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  get exited(): Promise<Exit> {
    return this.#process.exited;
  }

  /** The end of its output. */
  logTail(): string {
    return this.#process.logTail();
  }

  /** Resolves when the message is sent. A paused process reads it when it is resumed. */
  send(message: object): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.send(message, (error) => (error ? reject(error) : resolve()));
    });
  }

  /**
   * Resolves with the first matching message that was not received before. Rejects with the output
   * of the process when the process ends first.
   */
  receive<T = unknown>(matches: (message: T) => boolean = () => true): Promise<T> {
    const test = (message: unknown) => matches(message as T);
    const index = this.#received.findIndex(test);
    if (index !== -1) return Promise.resolve(this.#received.splice(index, 1)[0] as T);
    return new Promise((resolve, reject) => {
      const waiter = { matches: test, resolve: (m: unknown) => resolve(m as T), reject };
      if (this.#disconnected) this.#reject(waiter);
      else this.#waiters.add(waiter);
    });
  }

  /** Sends SIGSTOP, and resolves when the process has stopped. */
  pause(): Promise<void> {
    return this.#process.pause();
  }

  /** Sends SIGCONT. */
  resume(): void {
    this.#process.resume();
  }

  /** Sends SIGKILL, and resolves when the process has ended. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /** Sends SIGTERM, and SIGKILL after `graceMs`. Resolves with the exit code and signal. */
  async stop(graceMs?: number): Promise<Exit> {
    await this.#process.stop(graceMs);
    return await this.exited;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process.close();
  }

  #receive(message: unknown): void {
    for (const waiter of this.#waiters) {
      if (!waiter.matches(message)) continue;
      this.#waiters.delete(waiter);
      waiter.resolve(message);
      return;
    }
    this.#received.push(message);
  }

  #reject(waiter: Waiter): void {
    const log = this.logTail();
    this.exited.then(({ code, signal }) => {
      waiter.reject(new Error(`the process ended (${signal ?? code}) without the message\n${log}`));
    }, waiter.reject);
  }
}

export function startProcess(module: URL, options?: ProcessOptions): ControlledProcess {
  return new ControlledProcess(module, options);
}
