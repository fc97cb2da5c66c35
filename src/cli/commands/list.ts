import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { lockTable } from "../lock-table.js";
import { openStore } from "../open-store.js";
import { print, tell } from "../output.js";
import { toJson } from "../plain-text.js";
import { STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";
import { allViews, KIND_OPTIONS, spaceOf } from "../spaces.js";

export const list: Command = {
  usage: ["[OPTIONS] [PREFIX]"],
  about: "Shows every lock, election and once in use whose name begins with PREFIX.",
  options: {
    json: { help: "JSON lines on stdout, tokens as strings" },
    ...KIND_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast list deploy:", "what is being deployed"],
    ["holdfast list --json | jq -r .name", "just the names"],
  ],

  async run(args) {
    const prefix = args.atMostOne("PREFIX") ?? "";
    const space = spaceOf(args);
    using signals = new Signals();
    await using locks = await openStore(args, signals.interrupted);
    const views = await allViews(locks, prefix, space);
    const lines = args.has("json") ? views.map(toJson) : lockTable(views);
    if (views.length > 0) await print(lines);
    else if (!args.has("json")) tell("holdfast: no lock is in use.");
    return ExitCode.ok;
  },
};
