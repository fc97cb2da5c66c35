import type { Holdfast } from "../../api/holdfast.js";
import { StoreError } from "../../errors/index.js";
import type { Election } from "../../locks/election.js";
import type { AcquireOptions } from "../../options/options.js";
import { type Arguments, UsageError } from "../arguments.js";
import { awaitLease } from "../await-lease.js";
import type { Command, Ending } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { heldBy } from "../holder-text.js";
import { openCliStore } from "../open-cli-store.js";
import { print } from "../output.js";
import { toJson } from "../plain-text.js";
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
import { pause, Signals } from "../signals.js";
import { UnderLease } from "../under-lease.js";

const { fair: _, ...about } = ABOUT_OPTIONS;
const OBSERVE_MS = 500;
const RETRY_MS = 1_000;

export const elect: Command = {
  runsCommand: true,
  usage: ["[OPTIONS] NAME [--] COMMAND [ARGUMENT…]", "--observe [--json] NAME"],
  about:
    "Campaigns for NAME and runs the command when elected. When the lease is lost, the command " +
    "is ended and the campaign goes on; when the command ends by itself, holdfast resigns and " +
    "ends with its exit code. With --observe it prints who leads, whenever that changes.",
  options: {
    observe: { help: "do not campaign: print every leader, with --json as JSON lines" },
    ...WAIT_OPTIONS,
    ...COMMAND_OPTIONS,
    ...LEASE_OPTIONS,
    ...about,
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast elect indexer -- ./indexer", "on every host; one of them runs it"],
    ["holdfast elect --observe indexer", "who is it"],
  ],

  async run(args, report) {
    const name = args.one("NAME");
    using signals = new Signals();
    if (args.has("observe")) {
      if (args.rest || args.has("command")) throw new UsageError("--observe runs no command.");
      await using locks = await openCliStore(args, signals.interrupted, report);
      await observe(locks.election(name), args, signals.interrupted);
      signals.interrupted.throwIfAborted();
      return ExitCode.ok;
    }
    // Awaited here: what `using` opened must last until then.
    return await campaign(name, args, signals, report);
  },
};

async function campaign(
  name: string,
  args: Arguments,
  signals: Signals,
  report: Report,
): Promise<Ending> {
  const line = commandLineOf(args);
  const conflictCode = conflictCodeOf(args);
  const ttlMs = ttlMsOf(args);
  const graceMs = graceMsOf(args, ttlMs);
  const waitMs = waitMsOf(args);
  const meta = metaOf(args, labelOf(args, line));
  const options = { waitMs, ttlMs, graceMs, meta, signal: signals.interrupted };
  await using locks = await openCliStore(args, signals.interrupted, report);
  const under = new UnderLease(args, { signals, report, graceMs });
  for (let isFirst = true; ; isFirst = false) {
    const lease = await stand(locks, name, options, report, isFirst);
    if (!lease) return conflictCode;
    report.note(`${name}: elected, token ${lease.token}.`);
    const end = await under.run(lease, line);
    const ending = await under.endingOf(lease, end);
    if (ending !== ExitCode.leaseLost || (!end.loss && end.exitCode === ExitCode.leaseLost)) {
      return ending;
    }
    signals.interrupted.throwIfAborted();
    report.note(`${name}: no longer the leader; campaigning again.`);
  }
}

/** A candidate that once was elected stays one while the store is out of reach. */
async function stand(
  locks: Holdfast,
  name: string,
  options: AcquireOptions,
  report: Report,
  isFirst: boolean,
): ReturnType<typeof awaitLease> {
  for (;;) {
    try {
      const wait = { locks, space: "election", name, report } as const;
      return await awaitLease(wait, locks.election(name).campaign(options));
    } catch (error) {
      if (isFirst || !(error instanceof StoreError) || !error.retryable) throw error;
      report.note(`${error.message} Trying again.`);
      await pause(RETRY_MS, options.signal);
      options.signal?.throwIfAborted();
    }
  }
}

async function observe(election: Election, args: Arguments, signal: AbortSignal): Promise<void> {
  const { name } = election;
  for await (const leader of election.observe({ signal, everyMs: OBSERVE_MS })) {
    const text = leader ? heldBy(leader) : "no leader";
    await print([args.has("json") ? toJson({ name, leader }) : `${name}: ${text}`]);
  }
}
