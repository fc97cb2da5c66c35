import { UsageError } from "../arguments.js";
import { awaitLease } from "../await-lease.js";
import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { openCliStore } from "../open-cli-store.js";
import { print } from "../output.js";
import {
  ABOUT_OPTIONS,
  conflictCodeOf,
  EVENT_OPTIONS,
  fairnessOf,
  MODE_OPTIONS,
  metaOf,
  OUTPUT_OPTIONS,
  STORE_OPTIONS,
  WAIT_OPTIONS,
  waitMsOf,
} from "../settings.js";
import { Signals } from "../signals.js";
import { lockOf } from "./run.js";

export const acquire: Command = {
  usage: ["[OPTIONS] NAME --ttl TIME"],
  about:
    "Takes the lock NAME for a fixed time and prints its handle, for steps that are processes " +
    "of their own. Nothing renews it: choose --ttl above the longest run, or call `holdfast " +
    "renew` in time. The handle is a secret: with it any process can renew and release.",
  options: {
    ttl: { value: "TIME", help: "how long it is held without a renewal, as 30m; required" },
    ...WAIT_OPTIONS,
    ...MODE_OPTIONS,
    ...ABOUT_OPTIONS,
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [
    ["export HOLDFAST_HANDLE=$(holdfast acquire deploy --ttl 30m)", "first step"],
    ["holdfast renew", "a later step; reads HOLDFAST_HANDLE or stdin"],
    ["holdfast release", "the last step"],
  ],

  async run(args, report) {
    const name = args.one("NAME");
    if (args.rest) {
      throw new UsageError("acquire runs no command: use `holdfast run NAME -- COMMAND` for that.");
    }
    const ttlMs = args.durationMs("ttl");
    if (ttlMs === undefined) throw new UsageError("--ttl is missing, as in: --ttl 30m");
    const waitMs = waitMsOf(args);
    const conflictCode = conflictCodeOf(args);
    // This process is gone when another process looks at the lock: its pid would mislead.
    const meta = { ...metaOf(args, "holdfast acquire"), pid: undefined };
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const lease = await awaitLease(
      { locks, space: "lock", name, report },
      lockOf(locks, name, args).acquire({
        ttlMs,
        waitMs,
        meta,
        renew: false,
        transferable: true,
        signal: signals.interrupted,
        ...fairnessOf(args),
      }),
    );
    if (!lease) return conflictCode;
    signals.interrupted.throwIfAborted();
    report.detail(`${name}: held for ${formatDuration(lease.remainingMs())} unless renewed`);
    // The lease belongs to this process until the handle is printed: if that fails, it is released.
    await print([lease.handle ?? ""]);
    lease.detach();
    return ExitCode.ok;
  },
};
