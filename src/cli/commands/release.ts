import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { IS_OVER, readHandle } from "../handle-input.js";
import { openCliStore } from "../open-cli-store.js";
import { EVENT_OPTIONS, OUTPUT_OPTIONS, STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";

export const release: Command = {
  usage: ["[OPTIONS]"],
  about:
    "Gives back the lock that `holdfast acquire` took. Reads the handle from HOLDFAST_HANDLE, " +
    "else from stdin. Exit code 79 if the lease had ended before: others may have held " +
    "the lock while your steps still ran.",
  options: { ...EVENT_OPTIONS, ...OUTPUT_OPTIONS, ...STORE_OPTIONS },
  examples: [["holdfast release < handle.txt", "with the handle in a file"]],

  async run(args, report) {
    args.none();
    const handle = readHandle();
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const lease = await locks.resume(handle, { renew: false });
    if (!lease || !(await lease.release())) {
      report.error(IS_OVER);
      return ExitCode.leaseLost;
    }
    report.event("released", { name: lease.name, token: lease.token });
    report.detail(`${lease.name}: released`);
    return ExitCode.ok;
  },
};
