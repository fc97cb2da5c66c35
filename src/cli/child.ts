/**
 * The command that runs under a lock, in a process group of its own, so that a signal reaches its
 * own children too and the whole can be ended at once.
 */

import { type CommandLine, type Exit, type Launched, launch } from "./launcher.js";
import type { Reaper } from "./reaper.js";
import { pause } from "./signals.js";

/** How often to look whether the group is gone. */
const LOOK_MS = 10;

export class Child {
  readonly #group: number | null;
  readonly #hasTerminal: boolean;
  /** Resolves when the command itself has ended, or the shell that launched it. */
  readonly ended: Promise<Exit>;

  private constructor({ group, hasTerminal, exited }: Launched) {
    this.#group = group;
    this.#hasTerminal = hasTerminal;
    this.ended = exited;
  }

  /** Throws `LaunchError`. The reaper knows the group before the command runs. */
  static async start(line: CommandLine, env: NodeJS.ProcessEnv, reaper: Reaper): Promise<Child> {
    return new Child(await launch(line, env, reaper));
  }

  /** Sends a signal to the whole group; does nothing when the group is gone. */
  signal(signal: NodeJS.Signals): void {
    if (this.#group === null) return;
    try {
      process.kill(-this.#group, signal);
    } catch {}
  }

  /** Tells the group to end; CONT lets a stopped process receive the signal. */
  end(signal: NodeJS.Signals): void {
    this.signal(signal);
    this.signal("SIGCONT");
  }

  /** Whether a process of the group is left. */
  get isThere(): boolean {
    if (this.#group === null) return false;
    try {
      process.kill(-this.#group, 0);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  /** Waits until the whole group is gone, at most until `untilMs`; then KILL ends the rest. */
  async endBy(untilMs: number): Promise<void> {
    while (this.isThere && performance.now() < untilMs) await pause(LOOK_MS);
    if (!this.isThere) return;
    this.signal("SIGKILL");
    // The kernel takes a moment; a process that hangs in the kernel must not hang this one.
    for (let looks = 0; looks < 10 && this.isThere; looks += 1) await pause(LOOK_MS);
  }

  /** Whether the command was started. */
  get hasBegun(): boolean {
    return this.#group !== null;
  }

  /** Whether the command had the terminal to itself: then typed signals did not reach us. */
  get hadTerminal(): boolean {
    return this.#hasTerminal;
  }
}
