import type { OnceResult } from "../../locks/once.js";
import { UsageError } from "../arguments.js";
import type { Command, Ending } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import type { CommandEnd } from "../held-command.js";
import { whoIs } from "../holder-text.js";
import { openCliStore } from "../open-cli-store.js";
import type { Report } from "../report.js";
import {
  ABOUT_OPTIONS,
  COMMAND_OPTIONS,
  commandLineOf,
  conflictCodeOf,
  EVENT_OPTIONS,
  graceMsOf,
  LEASE_OPTIONS,
  labelOf,
  metaOf,
  OUTPUT_OPTIONS,
  STORE_OPTIONS,
  ttlMsOf,
  WAIT_OPTIONS,
  waitMsOf,
} from "../settings.js";
import { Signals } from "../signals.js";
import { UnderLease } from "../under-lease.js";

const { fair: _, ...about } = ABOUT_OPTIONS;

/** The command failed: the work is not done, so no mark may be left. */
class CommandFailed extends Error {
  readonly end: CommandEnd;

  constructor(end: CommandEnd) {
    super("The command failed.");
    this.end = end;
  }
}

export const once: Command = {
  runsCommand: true,
  usage: ["[OPTIONS] NAME --keep TIME [--] COMMAND [ARGUMENT…]"],
  about:
    "Runs the command unless it succeeded within the last TIME, here or on another host. Exit " +
    "code 0 of the command is remembered; any other code, or a lost lease, is not, so that the " +
    "next who asks runs it again: it must bear being repeated. Done already: exit code 0 at " +
    "once. Running elsewhere: exit code 1 (or -E) at once, or with -w wait for the outcome and " +
    "take over if it failed.",
  options: {
    keep: { value: "TIME", help: "how long a success is remembered, as 24h; required" },
    ...WAIT_OPTIONS,
    ...COMMAND_OPTIONS,
    ...LEASE_OPTIONS,
    ...about,
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [
    [`holdfast once "report:$(date +%F)" --keep 24h -- ./report.sh`, "from cron on every host"],
    [
      "holdfast once migrate:42 --keep 30d -w 10m -- ./migrate.sh",
      "at the start of every instance",
    ],
  ],

  async run(args, report) {
    const name = args.one("NAME");
    const line = commandLineOf(args);
    const keepMs = args.durationMs("keep");
    if (keepMs === undefined) throw new UsageError("--keep is missing, as in: --keep 24h");
    const waitMs = waitMsOf(args, 0);
    const conflictCode = conflictCodeOf(args);
    const ttlMs = ttlMsOf(args);
    const graceMs = graceMsOf(args, ttlMs);
    const meta = metaOf(args, labelOf(args, line));
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const under = new UnderLease(args, { signals, report, graceMs });
    try {
      const result = await locks.once(
        name,
        async (lease) => {
          report.event("acquired", { name, token: lease.token });
          report.detail(`${name}: acquired, token ${lease.token}`);
          const end = await under.run(lease, line);
          if (end.loss || end.exitCode !== ExitCode.ok) throw new CommandFailed(end);
        },
        { keepMs, waitMs, ttlMs, graceMs, meta, signal: signals.interrupted },
      );
      return tell(name, result, { keepMs, conflictCode, report });
    } catch (error) {
      return failedEnding(error);
    }
  },
};

function tell(
  name: string,
  result: OnceResult<void>,
  { keepMs, conflictCode, report }: { keepMs: number; conflictCode: number; report: Report },
): number {
  if (result.ran) {
    report.event("done", { name, token: result.token });
    report.detail(`${name}: done, remembered for ${formatDuration(keepMs)}`);
    return ExitCode.ok;
  }
  const by = result.by ? ` by ${whoIs(result.by)}` : "";
  report.event("skipped", { name, state: result.state, by: result.by, token: result.token });
  if (result.state === "done") {
    report.note(`${name}: done already${by}; nothing to do.`);
    return ExitCode.ok;
  }
  report.note(`${name}: not run: it is running${by}. Wait for it with -w.`);
  return conflictCode;
}

function failedEnding(error: unknown): Ending {
  // After a loss the library throws its own error, with what the body threw as cause.
  const failed = [error, (error as Error).cause].find((item) => item instanceof CommandFailed);
  if (!failed) throw error;
  const { loss, exitCode, interrupt } = (failed as CommandFailed).end;
  if (loss || failed !== error) return ExitCode.leaseLost;
  return interrupt ? { interrupt } : exitCode;
}
