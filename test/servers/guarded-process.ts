import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Guard } from "./guard.js";
import { isStopped } from "./process-state.js";
import { waitUntil } from "./wait-until.js";

/** A server that writes to memory is not slow because others keep the disk busy. */
const MEMORY = "/dev/shm";
/** A member of etcd takes 128 MiB before it has anything to write. */
const ROOM_BYTES = 4 * 1024 ** 3;

function isRoomy(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= ROOM_BYTES;
}

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment; default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** Opens a channel for JSON messages (the command must be node). */
  readonly ipc?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * A child process with a temporary folder, both of which end with this process at the latest (see
 * Guard). It leads a group of its own and signals go to that group, so that its children follow it.
 * It can be launched again after it ended; output is kept in one log in the folder.
 */
export class GuardedProcess {
  readonly dir: string;
  readonly #name: string;
  readonly #guard: Guard;
  #child: ChildProcess | null = null;
  #exit: Promise<Exit> = Promise.resolve({ code: null, signal: null });
  #running = false;

  constructor(name: string) {
    this.#name = name;
    this.dir = mkdtempSync(join(isRoomy(MEMORY) ? MEMORY : tmpdir(), `holdfast-${name}-`));
    this.#guard = new Guard(this.dir);
  }

  /** The process id; throws unless it runs. */
  get pid(): number {
    if (!this.#running) throw new Error(`${this.#name} is not running`);
    return this.#child?.pid ?? -1;
  }

  get guardPid(): number {
    return this.#guard.pid;
  }

  get running(): boolean {
    return this.#running;
  }

  /** Resolves when the process last launched has ended. */
  get exited(): Promise<Exit> {
    return this.#exit;
  }

  launch({ command, args, env, ipc = false }: Launch): ChildProcess {
    if (this.#running) throw new Error(`${this.#name} runs already`);
    // A file, not a pipe: a server must not stall because the tests do not read its log.
    const log = openSync(join(this.dir, "log"), "a");
    const child = spawn(command, args, {
      cwd: this.dir,
      env: env ?? process.env,
      detached: true,
      stdio: ["ignore", log, log, ipc ? "ipc" : "ignore"],
    });
    if (child.pid !== undefined) {
      this.#guard.watch(child.pid);
      this.#running = true;
    }
    closeSync(log);
    this.#child = child;
    this.#exit = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        this.#running = false;
        this.#guard.forget();
        resolve({ code, signal });
      });
    });
    // Whoever starts it looks at `exited`; nobody has to.
    this.#exit.catch(() => undefined);
    return child;
  }

  /** The end of what it printed. */
  logTail(): string {
    return readFileSync(join(this.dir, "log"), "utf8").slice(-3000);
  }

  /** SIGSTOP; resolves once every thread stands still. */
  async pause(): Promise<void> {
    const { pid } = this;
    process.kill(-pid, "SIGSTOP");
    await waitUntil(() => isStopped(pid), { what: `${this.#name} stops`, everyMs: 1 });
  }

  /** SIGCONT. */
  resume(): void {
    process.kill(-this.pid, "SIGCONT");
  }

  /** SIGKILL; resolves when it is gone. Does nothing when it has ended. */
  async kill(): Promise<void> {
    if (this.#running) process.kill(-this.pid, "SIGKILL");
    await this.#exit;
  }

  /** SIGTERM, and SIGKILL when it does not end in time. Does nothing when it has ended. */
  async stop(graceMs = 5000): Promise<void> {
    if (!this.#running) return;
    process.kill(-this.pid, "SIGTERM");
    // A paused process acts on SIGTERM only when it may run.
    process.kill(-this.pid, "SIGCONT");
    const timer = setTimeout(() => void this.kill(), graceMs);
    await this.#exit;
    clearTimeout(timer);
  }

  /** Ends the process and its group, and removes the folder. Can be called twice. */
  async close(): Promise<void> {
    if (this.#running) await this.kill();
    await this.#guard.close();
  }
}
