import type { Holdfast } from "../../api/holdfast.js";
import type { Lock } from "../../locks/lock.js";
import { type Arguments, UsageError } from "../arguments.js";
import { awaitLease } from "../await-lease.js";
import type { Command } from "../command.js";
import { openCliStore } from "../open-cli-store.js";
import {
  ABOUT_OPTIONS,
  COMMAND_OPTIONS,
  commandLineOf,
  conflictCodeOf,
  EVENT_OPTIONS,
  fairnessOf,
  graceMsOf,
  LEASE_OPTIONS,
  labelOf,
  MODE_OPTIONS,
  metaOf,
  OUTPUT_OPTIONS,
  STORE_OPTIONS,
  ttlMsOf,
  WAIT_OPTIONS,
  waitMsOf,
} from "../settings.js";
import { Signals } from "../signals.js";
import { UnderLease } from "../under-lease.js";

export const run: Command = {
  runsCommand: true,
  usage: ["[OPTIONS] NAME [--] COMMAND [ARGUMENT…]", "[OPTIONS] NAME -c 'SHELL LINE'"],
  about:
    "Waits for the lock NAME, runs the command while it is held, and releases it. No two " +
    "commands run at the same time under the same name of the same store. The command finds the " +
    "name in HOLDFAST_NAME and the fencing token in HOLDFAST_TOKEN. When the lease is lost, the " +
    "command gets SIGTERM and, after the grace, SIGKILL, with all its children.",
  options: {
    ...WAIT_OPTIONS,
    ...MODE_OPTIONS,
    ...COMMAND_OPTIONS,
    ...LEASE_OPTIONS,
    ...ABOUT_OPTIONS,
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast run backup -- ./backup.sh --full", "one backup at a time"],
    ["holdfast run -n -E 0 report -- ./report.sh", "for cron: skip it when the last still runs"],
    ["holdfast run -j 4 encode -- ffmpeg …", "at most four at a time"],
    ["holdfast run -w 10m --reason 'release 7' deploy -c 'make && make deploy'", "wait, at most"],
  ],

  async run(args, report) {
    const name = args.one("NAME");
    const line = commandLineOf(args);
    const waitMs = waitMsOf(args);
    const conflictCode = conflictCodeOf(args);
    const ttlMs = ttlMsOf(args);
    const graceMs = graceMsOf(args, ttlMs);
    const meta = metaOf(args, labelOf(args, line));
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const lock = lockOf(locks, name, args);
    const lease = await awaitLease(
      { locks, space: "lock", name, report },
      lock.acquire({
        waitMs,
        ttlMs,
        graceMs,
        meta,
        signal: signals.interrupted,
        ...fairnessOf(args),
      }),
    );
    if (!lease) return conflictCode;
    const under = new UnderLease(args, { signals, report, graceMs });
    // Awaited here: the store must stay open until the lock is released.
    return await under.endingOf(lease, await under.run(lease, line));
  },
};

/** The lock that `-s`, `-x` and `-j` ask for. */
export function lockOf(locks: Holdfast, name: string, args: Arguments): Lock {
  const slots = args.count("slots", 1, Number.MAX_SAFE_INTEGER);
  const kinds = [args.has("shared"), args.has("exclusive"), slots !== undefined];
  if (kinds.filter(Boolean).length > 1) throw new UsageError("Give one of -s, -x and -j.");
  if (slots !== undefined) return locks.semaphore(name, slots);
  return args.has("shared") ? locks.readWrite(name).read : locks.mutex(name);
}
