import { reasonProblem } from "../../rules/reason.js";
import { UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { heldBy } from "../holder-text.js";
import { openCliStore } from "../open-cli-store.js";
import { EVENT_OPTIONS, OUTPUT_OPTIONS, STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";
import { KIND_OPTIONS, spaceOf } from "../spaces.js";

export const revoke: Command = {
  usage: ["[OPTIONS] NAME --token N --reason TEXT"],
  about:
    "Takes NAME away from the holder with token N (see `holdfast show`); a newer holder is left " +
    "alone. The lock is free at once, while the holder learns of it at its next renewal (a third " +
    "of its ttl at the latest): until then both may work, unless what they write to checks tokens.",
  options: {
    token: { value: "N", help: "the token of the lease to end; required" },
    reason: { value: "TEXT", help: "why: the holder reads it; required, at most 1 KiB" },
    ...KIND_OPTIONS,
    ...EVENT_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [["holdfast revoke deploy --token 17 --reason 'host is gone'", ""]],

  async run(args, report) {
    const name = args.one("NAME");
    const text = args.text("token") ?? "";
    if (!/^\d+$/.test(text)) {
      throw new UsageError(`--token is missing or no number: see \`holdfast show ${name}\`.`);
    }
    const reason = args.text("reason") ?? "";
    const problem = reasonProblem(reason);
    if (problem) throw new UsageError(`--reason ${problem}.`);
    const space = spaceOf(args) ?? "lock";
    const token = BigInt(text);
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted, report);
    const isDone = await locks.revoke(name, { token, reason }, space);
    report.event("revoke", { name, token, done: isDone });
    if (isDone) {
      report.note(`${name}: revoked the lease with token ${token}.`);
      return ExitCode.ok;
    }
    const [holder] = (await locks.inspect(name, space)).holders;
    const now = holder ? `It is ${heldBy(holder)}.` : "It is free.";
    report.note(`${name}: nothing revoked: token ${token} does not hold it. ${now}`);
    return ExitCode.notAcquired;
  },
};
