import { type Launch, OwnedProcess } from "./owned-process.js";
import { waitUntil } from "./wait-until.js";

/** How long a server may take to start, on a busy machine. */
const START_MS = 60_000;

/** A server process with a folder. It counts as started when it answers. */
export abstract class ServerProcess implements AsyncDisposable {
  readonly name: string;
  readonly #process: OwnedProcess;

  constructor(name: string, isOnDisk = false) {
    this.name = name;
    this.#process = new OwnedProcess(name, isOnDisk);
  }

  protected abstract launch(): Launch;

  /**
   * Whether the server answers. The answer must come from this process: another process may have
   * taken the port, so that this one is about to end.
   */
  protected abstract isReady(): Promise<boolean>;

  /** Its folder, removed at the end. */
  get dir(): string {
    return this.#process.dir;
  }

  /** Throws unless the server runs. Changes with a restart. */
  get pid(): number {
    return this.#process.pid;
  }

  get reaperPid(): number {
    return this.#process.reaperPid;
  }

  get running(): boolean {
    return this.#process.running;
  }

  logTail(): string {
    return this.#process.logTail();
  }

  /** Starts it again after `kill` or `stop`. Resolves when it answers. */
  async start(): Promise<void> {
    const launch = this.launch();
    this.#process.launch(launch);
    try {
      const what = `${this.name} answers`;
      await waitUntil(() => !this.running || this.isReady(), { what, timeoutMs: START_MS });
      if (!this.running) await this.#process.exited;
    } catch (cause) {
      const log = this.logTail();
      await this.#process.kill().catch(() => undefined);
      throw new Error(`${launch.command} did not start (is it installed?)\n${log}`, { cause });
    }
    if (!this.running) throw new Error(`${launch.command} gave up:\n${this.logTail()}`);
  }

  /** Sends the stop signal and waits for the end. The folder stays for `start`. */
  stop(): Promise<void> {
    return this.#process.stop();
  }

  /** Sends SIGKILL, like a crash. The folder stays for `start`. */
  kill(): Promise<void> {
    return this.#process.kill();
  }

  /** Sends SIGSTOP: connections stay open, and no request is answered. */
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

/** Starts a server, and closes one that does not start. */
export async function startOrClose<T extends ServerProcess>(
  server: T,
  start: () => Promise<unknown> = () => server.start(),
): Promise<T> {
  try {
    await start();
    return server;
  } catch (error) {
    await server.close();
    throw error;
  }
}

/** Waits for all servers. When one does not start, closes those that did. */
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
