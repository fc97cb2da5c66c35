import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isStopped } from "./process-state.js";
import { Reaper } from "./reaper.js";
import { waitUntil } from "./wait-until.js";

/** A folder in memory: a busy disk does not slow down its server. A test run has its own. */
const MEMORY = process.env.HOLDFAST_TEST_MEMORY ?? "/dev/shm";
/** A member of etcd allocates 128 MiB before its first write. */
const ROOM_BYTES = 4 * 1024 ** 3;

function isRoomy(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= ROOM_BYTES;
}

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** All environment variables. Default: those of this process. */
  readonly env?: NodeJS.ProcessEnv;
  /** The signal that `stop` sends. Default: SIGTERM. */
  readonly stopSignal?: NodeJS.Signals;
  /** Opens a channel for JSON messages (the command must be node). */
  readonly ipc?: boolean;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/**
 * A child process with a temporary folder. Both end with this process at the latest (see Reaper).
 * The child process leads a process group, and signals go to the group, so they reach its children.
 * It can be launched again after its end. Its output is in one log in the folder.
 */
export class OwnedProcess {
  readonly dir: string;
  readonly #name: string;
  readonly #reaper: Reaper;
  #child: ChildProcess | null = null;
  #exit: Promise<Exit> = Promise.resolve({ code: null, signal: null });
  #running = false;
  #stopSignal: NodeJS.Signals = "SIGTERM";

  /** `isOnDisk`: its folder is on a disk, for measurements of what the disk costs. */
  constructor(name: string, isOnDisk = false) {
    this.#name = name;
    const place = !isOnDisk && isRoomy(MEMORY) ? MEMORY : tmpdir();
    this.dir = mkdtempSync(join(place, `holdfast-${name}-`));
    this.#reaper = new Reaper(this.dir);
  }

  /** The process id. Throws unless the process runs. */
  get pid(): number {
    if (!this.#running) throw new Error(`${this.#name} is not running`);
    return this.#child?.pid ?? -1;
  }

  get reaperPid(): number {
    return this.#reaper.pid;
  }

  get running(): boolean {
    return this.#running;
  }

  /** Resolves when the process that was launched last has ended. */
  get exited(): Promise<Exit> {
    return this.#exit;
  }

  launch({ command, args, env, stopSignal = "SIGTERM", ipc = false }: Launch): ChildProcess {
    if (this.#running) throw new Error(`${this.#name} runs already`);
    this.#stopSignal = stopSignal;
    // A file, not a pipe: a server must not block when a test does not read its log.
    const log = openSync(join(this.dir, "log"), "a");
    const child = spawn(command, args, {
      cwd: this.dir,
      env: env ?? process.env,
      detached: true,
      stdio: ["ignore", log, log, ipc ? "ipc" : "ignore"],
    });
    if (child.pid !== undefined) {
      this.#reaper.watch(child.pid);
      this.#running = true;
    }
    closeSync(log);
    this.#child = child;
    this.#exit = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        this.#running = false;
        this.#reaper.forget();
        resolve({ code, signal });
      });
    });
    // A test may ignore `exited`: its rejection is not unhandled.
    this.#exit.catch(() => undefined);
    return child;
  }

  /** The end of its output. */
  logTail(): string {
    return readFileSync(join(this.dir, "log"), "utf8").slice(-3000);
  }

  /** Sends SIGSTOP, and resolves when every thread has stopped. */
  async pause(): Promise<void> {
    const { pid } = this;
    process.kill(-pid, "SIGSTOP");
    await waitUntil(() => isStopped(pid), { what: `${this.#name} stops`, everyMs: 1 });
  }

  /** Sends SIGCONT. */
  resume(): void {
    process.kill(-this.pid, "SIGCONT");
  }

  /** Sends SIGKILL unless the process has ended, and resolves when it has. */
  async kill(): Promise<void> {
    if (this.#running) process.kill(-this.pid, "SIGKILL");
    await this.#exit;
  }

  /** Sends the stop signal, and SIGKILL if the process does not end in time. */
  async stop(graceMs = 5000): Promise<void> {
    if (!this.#running) return;
    process.kill(-this.pid, this.#stopSignal);
    // A paused process handles the signal only after SIGCONT.
    process.kill(-this.pid, "SIGCONT");
    const timer = setTimeout(() => void this.kill(), graceMs);
    await this.#exit;
    clearTimeout(timer);
  }

  /** Ends the process group and removes the folder. A second call does nothing. */
  async close(): Promise<void> {
    if (this.#running) await this.kill();
    await this.#reaper.close();
  }
}
