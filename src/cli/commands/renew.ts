import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { IS_OVER, readHandle } from "../handle-input.js";
import { openCliStore } from "../open-cli-store.js";
import { EVENT_OPTIONS, OUTPUT_OPTIONS, STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";

export const renew: Command = {
  usage: ["[OPTIONS]"],
  about:
    "Prolongs the lease that `holdfast acquire` took, from now on for --ttl or for the time it " +
    "was acquired with; never shortens it. Reads the handle from HOLDFAST_HANDLE, else from " +
    "stdin. Exit code 79 if the lease has ended.",
  options: {
    ttl: { value: "TIME", help: "how long it is to hold from now on" },
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [["holdfast renew --ttl 10m", "ten more minutes"]],

  async run(args, report) {
    args.none();
    const ttlMs = args.durationMs("ttl");
    const handle = readHandle();
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const lease = await locks.resume(handle, { renew: false });
    if (!lease) {
      report.error(IS_OVER);
      return ExitCode.leaseLost;
    }
    const { name, token } = lease;
    try {
      if (ttlMs !== undefined) await lease.renew(ttlMs);
    } finally {
      // However this ends, the lease is not this process's to release.
      if (lease.state === "held") lease.detach();
    }
    const remainingMs = lease.remainingMs();
    report.event("renewed", { name, token, remainingMs: Math.round(remainingMs) });
    report.detail(`${name}: held for another ${formatDuration(remainingMs)}`);
    return ExitCode.ok;
  },
};
