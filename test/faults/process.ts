import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { type Exit, GuardedProcess } from "../servers/guarded-process.js";

export interface ProcessOptions {
  readonly args?: readonly string[];
  /** Added to the environment of this process. */
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
 * A node process that runs a module, to be stopped and killed. The two exchange JSON messages:
 * `process.send(message)` and `process.on("message", …)` on its side, `send` and `receive` here.
 */
export class ControlledProcess implements AsyncDisposable {
  readonly #process = new GuardedProcess("process");
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
    // Comes after the last message, which "exit" may overtake.
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

  /** The end of what it printed. */
  logTail(): string {
    return this.#process.logTail();
  }

  /** Resolves when the message is on its way. A paused process reads it when it is resumed. */
  send(message: object): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#child.send(message, (error) => (error ? reject(error) : resolve()));
    });
  }

  /**
   * The first message not yet received that matches, in order of arrival; waits for it. Rejects,
   * with what the process printed, when it ends instead.
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

  /** SIGSTOP; resolves once it stands still. */
  pause(): Promise<void> {
    return this.#process.pause();
  }

  /** SIGCONT. */
  resume(): void {
    this.#process.resume();
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#process.kill();
  }

  /** SIGTERM, kill -9 after `graceMs`; resolves with how it ended. */
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
