import { GuardedProcess, type Launch } from "./guarded-process.js";
import { waitUntil } from "./wait-until.js";

/** A server of our own: started when it answers, stopped by its process id, with a folder. */
export abstract class ServerProcess implements AsyncDisposable {
  readonly name: string;
  readonly #process: GuardedProcess;

  constructor(name: string) {
    this.name = name;
    this.#process = new GuardedProcess(name);
  }

  protected abstract launch(): Launch;

  /**
   * Whether it serves. It must be sure to speak with this very process: another one may have taken
   * the port, while ours is about to give up.
   */
  protected abstract isReady(): Promise<boolean>;

  /** Its folder, removed at the end. */
  get dir(): string {
    return this.#process.dir;
  }

  /** Throws when it is not running; changes with a restart. */
  get pid(): number {
    return this.#process.pid;
  }

  get guardPid(): number {
    return this.#process.guardPid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  logTail(): string {
    return this.#process.logTail();
  }

  /** Starts it again after `kill` or `stop`; resolves when it answers. */
  async start(): Promise<void> {
    const launch = this.launch();
    this.#process.launch(launch);
    try {
      await waitUntil(() => !this.running || this.isReady(), { what: `${this.name} answers` });
      if (!this.running) await this.#process.exited;
    } catch (cause) {
      const log = this.logTail();
      await this.#process.kill().catch(() => undefined);
      throw new Error(`${launch.command} did not start (is it installed?)\n${log}`, { cause });
    }
    if (!this.running) throw new Error(`${launch.command} gave up:\n${this.logTail()}`);
  }

  /** SIGTERM, then waits. The folder stays: `start` brings it back. */
  stop(): Promise<void> {
    return this.#process.stop();
  }

  /** SIGKILL, as a crash. The folder stays: `start` brings it back. */
  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** SIGSTOP: connections stay open and nothing is answered. */
  pause(): Promise<void> {
    return this.#process.pause();
  }

  resume(): void {
    this.#process.resume();
  }

  /** Ends it and removes its folder. */
  close(): Promise<void> {
    return this.#process.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Waits for all, and closes those that started when one did not. */
export async function startAll<T extends AsyncDisposable>(
  starts: readonly Promise<T>[],
): Promise<T[]> {
  const results = await Promise.allSettled(starts);
  const failed = results.find((result) => result.status === "rejected");
  const started = results.flatMap((result) =>
    result.status === "fulfilled" ? [result.value] : [],
  );
  if (failed) {
    await closeAll(started);
    throw failed.reason;
  }
  return started;
}

export async function closeAll(servers: readonly AsyncDisposable[]): Promise<void> {
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
}
