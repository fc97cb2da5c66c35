import { channel } from "node:diagnostics_channel";
import { channels, type ReleaseEvent } from "../events.js";
import type { Lease } from "../lease/lease.js";
import type { Arguments } from "./arguments.js";
import type { Ending } from "./command.js";
import { ExitCode } from "./exit-code.js";
import { type CommandEnd, runWhileHeld } from "./held-command.js";
import type { CommandLine } from "./launcher.js";
import { storeUrlOf } from "./open-store.js";
import type { Report } from "./report.js";
import type { Signals } from "./signals.js";

/**
 * What `run`, `once` and `elect` have in common: a command under a lease, and what to tell about
 * it.
 */
export class UnderLease {
  readonly #args: Arguments;
  readonly #signals: Signals;
  readonly #report: Report;
  readonly #graceMs: number;

  constructor(
    args: Arguments,
    { signals, report, graceMs }: { signals: Signals; report: Report; graceMs: number },
  ) {
    this.#args = args;
    this.#signals = signals;
    this.#report = report;
    this.#graceMs = graceMs;
    channel(channels.release).subscribe((event) => this.#onRelease(event as ReleaseEvent));
  }

  async run(lease: Lease, line: CommandLine): Promise<CommandEnd> {
    const end = await runWhileHeld(lease, line, {
      env: this.#environment(lease),
      graceMs: this.#graceMs,
      signals: this.#signals,
      report: this.#report,
    });
    const { exitCode, loss } = end;
    this.#report.event("ended", { name: lease.name, token: lease.token, exitCode, lost: !!loss });
    return end;
  }

  /**
   * Releases the lease; the exit code is the command's unless the lease did not hold until then.
   */
  async endingOf(lease: Lease, { exitCode, loss, interrupt }: CommandEnd): Promise<Ending> {
    const { name, token } = lease;
    const wasHeld = await lease.release();
    if (loss) return ExitCode.leaseLost;
    if (!wasHeld) {
      this.#report.event("lost", { name, token, reason: "missing" });
      this.#report.note(
        `${name}: the command ended with ${exitCode}, but its lease was gone before: ` +
          "somebody else may have run at the same time. Check what it did.",
      );
      return ExitCode.leaseLost;
    }
    this.#report.event("released", { name, token });
    this.#report.detail(`${name}: released, the command ended with ${exitCode}`);
    return interrupt ? { interrupt } : exitCode;
  }

  /**
   * A release that the store did not hear is no reason to fail, but the next in line will wonder.
   */
  #onRelease({ name, outcome }: ReleaseEvent): void {
    if (outcome !== "failed") return;
    this.#report.note(
      `${name}: the store could not be told of the release; the lock is free when its ttl is over.`,
    );
  }

  /** The store's URL may hold a password, and a handle is one: neither is passed on unasked. */
  #environment({ name, token }: Lease): NodeJS.ProcessEnv {
    const { HOLDFAST_HANDLE: _handle, HOLDFAST_STORE: _store, ...inherited } = process.env;
    const env = { ...inherited, HOLDFAST_NAME: name, HOLDFAST_TOKEN: String(token) };
    if (!this.#args.has("export-store")) return env;
    return { ...env, HOLDFAST_STORE: storeUrlOf(this.#args) };
  }
}
