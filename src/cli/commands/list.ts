import type { Holdfast } from "../../api/holdfast.js";
import { UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { deadlockText } from "../holder-text.js";
import { lockTable } from "../lock-table.js";
import { openCliStore, storeNameOf } from "../open-cli-store.js";
import { print, tell } from "../output.js";
import { toJson } from "../plain-text.js";
import { STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";
import { allViews, KIND_OPTIONS, spaceOf } from "../spaces.js";

export const list: Command = {
  usage: ["[OPTIONS] [PREFIX]"],
  about:
    "Shows every lock, election and once in use whose name begins with PREFIX. With --deadlocks " +
    "it shows only locks whose holders wait for each other, as far as programs took them by " +
    "`run` of the library; the exit code is then 1 if there are any.",
  options: {
    deadlocks: { help: "show locks whose holders wait for each other; exit code 1 if any" },
    json: { help: "JSON lines on stdout, tokens as strings" },
    ...KIND_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast list deploy:", "what is being deployed"],
    ["holdfast list --json | jq -r .name", "just the names"],
    ["holdfast list --deadlocks", "which holders wait for each other"],
  ],

  async run(args) {
    const prefix = args.atMostOne("PREFIX") ?? "";
    const space = spaceOf(args);
    const isOfLocks = space === null || space === "lock";
    if (args.has("deadlocks") && !isOfLocks) throw new UsageError("--deadlocks shows locks only.");
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted);
    if (args.has("deadlocks")) return await listDeadlocks(locks, prefix, args.has("json"));
    const views = await allViews(locks, prefix, space);
    const lines = args.has("json") ? views.map(toJson) : lockTable(views);
    if (views.length > 0) await print(lines);
    else if (!args.has("json")) tell(`holdfast: no lock is in use in ${await storeNameOf(args)}`);
    return ExitCode.ok;
  },
};

async function listDeadlocks(locks: Holdfast, prefix: string, isJson: boolean): Promise<number> {
  const found = await locks.findDeadlocks({ prefix });
  if (found.length > 0) await print(isJson ? found.map(toJson) : found.flatMap(deadlockText));
  else if (!isJson) tell("holdfast: no deadlock was found.");
  return found.length > 0 ? ExitCode.deadlock : ExitCode.ok;
}
