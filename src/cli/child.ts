/**
 * The command that runs under a lock, in a process group of its own, so that a signal reaches its
 * own children too and the whole can be ended at once.
 */
import type { Guard } from "./guard.js";
import { type CommandLine, type Exit, type Launched, launch } from "./launcher.js";
import { pause } from "./pause.js";

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

  /** Throws `LaunchError`. The guard knows the group before the command runs. */
  static async start(line: CommandLine, env: NodeJS.ProcessEnv, guard: Guard): Promise<Child> {
    return new Child(await launch(line, env, guard));
  }

  /** Sends a signal to the whole group; a group that is gone does not mind. */
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

  /** Whether anything of the group is left. */
  get isThere(): boolean {
    if (this.#group === null) return false;
    try {
      process.kill(-this.#group, 0);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  /** Waits until nothing of the group is left, at most until `untilMs`; then KILL ends what is. */
  async endBy(untilMs: number): Promise<void> {
    while (this.isThere && performance.now() < untilMs) await pause(LOOK_MS);
    if (!this.isThere) return;
    this.signal("SIGKILL");
    // Dead at once, but it takes the kernel a moment; what hangs in the kernel must not hang us.
    for (let looks = 0; looks < 10 && this.isThere; looks += 1) await pause(LOOK_MS);
  }

  /** Whether there is, or was, anything to run. */
  get hasBegun(): boolean {
    return this.#group !== null;
  }

  /** Whether it had the terminal to itself: what was typed there, we did not get. */
  get hadTerminal(): boolean {
    return this.#hasTerminal;
  }
}
