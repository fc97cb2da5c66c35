import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { heldBy } from "../holder-text.js";
import { openCliStore } from "../open-cli-store.js";
import {
  conflictCodeOf,
  EVENT_OPTIONS,
  OUTPUT_OPTIONS,
  STORE_OPTIONS,
  WAIT_OPTIONS,
  waitMsOf,
} from "../settings.js";
import { pause, Signals } from "../signals.js";
import { KIND_OPTIONS, spaceOf } from "../spaces.js";

const LOOK_MS = 200;

export const wait: Command = {
  usage: ["[OPTIONS] NAME"],
  about:
    "Waits until NAME is free, without taking it or standing in its queue. It may be taken " +
    "again the moment this ends: to do something while it is free, use `holdfast run`.",
  options: {
    ...WAIT_OPTIONS,
    ...KIND_OPTIONS,
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [["holdfast wait -w 5m deploy && ./smoke-test.sh", "after the deployment"]],

  async run(args, report) {
    const name = args.one("NAME");
    const waitMs = waitMsOf(args);
    const conflictCode = conflictCodeOf(args);
    const space = spaceOf(args) ?? "lock";
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const startMs = performance.now();
    for (;;) {
      const { holders } = await locks.inspect(name, space);
      const waitedMs = performance.now() - startMs;
      const [holder] = holders;
      if (!holder) {
        report.event("free", { name, waitedMs: Math.round(waitedMs) });
        return ExitCode.ok;
      }
      if (waitedMs >= waitMs) {
        report.event("conflict", { name, holder });
        const after = waitMs > 0 ? ` after ${formatDuration(waitMs)}` : "";
        report.note(`${name}: not free${after}: ${heldBy(holder)}.`);
        return conflictCode;
      }
      signals.interrupted.throwIfAborted();
      const pauseMs = Math.min(LOOK_MS, waitMs - waitedMs);
      await pause(pauseMs, signals.interrupted);
      signals.interrupted.throwIfAborted();
    }
  },
};
