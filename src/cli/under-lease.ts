import { channel } from "node:diagnostics_channel";
import { channels, type ReleaseEvent } from "../events/events.js";
import type { Lease } from "../lease/lease.js";
import type { Arguments } from "./arguments.js";
import type { Ending } from "./command.js";
import { ExitCode } from "./exit-code.js";
import { type CommandEnd, HeldCommand } from "./held-command.js";
import type { CommandLine } from "./launcher.js";
import { storeUrlOf } from "./open-cli-store.js";
import type { Report } from "./report.js";
import type { Signals } from "./signals.js";

/** The common part of `run`, `once` and `elect`: runs a command under a lease, and reports it. */
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
    const command = new HeldCommand(lease, this.#graceMs, this.#signals, this.#report);
    const end = await command.run(line, this.#environment(lease));
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
          "another holder may have run at the same time. Check the result of the command.",
      );
      return ExitCode.leaseLost;
    }
    this.#report.event("released", { name, token });
    this.#report.detail(`${name}: released, the command ended with ${exitCode}`);
    return interrupt ? { interrupt } : exitCode;
  }

  /**
   * A release that did not reach the store is no failure, but the next waiter waits for the ttl.
   */
  #onRelease({ name, outcome }: ReleaseEvent): void {
    if (outcome !== "failed") return;
    this.#report.note(
      `${name}: the store could not be told of the release; the lock is free after its ttl.`,
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
