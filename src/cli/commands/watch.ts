import { UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { lockTable } from "../lock-table.js";
import { openStore } from "../open-store.js";
import { print } from "../output.js";
import { pause } from "../pause.js";
import { toJson } from "../plain-text.js";
import { QuitKey } from "../quit-key.js";
import { STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";
import { allViews, KIND_OPTIONS, spaceOf } from "../spaces.js";

const EVERY_MS = 1_000;
const MIN_EVERY_MS = 100;
const CLEAR_SCREEN = "\x1b[H\x1b[J";

export const watch: Command = {
  usage: ["[OPTIONS] [PREFIX]"],
  about:
    "Shows the locks in use whose names begin with PREFIX, again and again until it is " +
    "interrupted. On a terminal the table is redrawn, and the key q ends it; elsewhere it is " +
    "printed whenever holders or waiters change.",
  options: {
    every: { value: "TIME", help: "how often to look; default 1s" },
    json: { help: "every look as one JSON line on stdout" },
    ...KIND_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [["holdfast watch deploy:", "follow all deployments"]],

  async run(args) {
    const prefix = args.atMostOne("PREFIX") ?? "";
    const everyMs = args.durationMs("every") ?? EVERY_MS;
    if (everyMs < MIN_EVERY_MS) {
      throw new UsageError(`--every must be at least ${formatDuration(MIN_EVERY_MS)}.`);
    }
    const space = spaceOf(args);
    using signals = new Signals();
    await using locks = await openStore(args, signals.interrupted);
    const isLive = process.stdout.isTTY && !args.has("json");
    using key = isLive ? new QuitKey() : null;
    const ended = key ? AbortSignal.any([signals.interrupted, key.pressed]) : signals.interrupted;
    const hint = key?.isListening ? ["", "q: quit"] : [];
    let shown = "";
    while (!ended.aborted) {
      const views = await allViews(locks, prefix, space);
      if (args.has("json")) {
        await print([toJson({ at: new Date().toISOString(), locks: views })]);
      } else {
        const table = views.length > 0 ? lockTable(views) : ["no lock is in use"];
        const what = toJson(
          views.map(({ name, holders, waiters }) => [name, holders.map(tokenOf), waiters.length]),
        );
        if (isLive) await print([...table, ...hint], CLEAR_SCREEN);
        else if (what !== shown) await print([new Date().toISOString(), ...table, ""]);
        shown = what;
      }
      await pause(everyMs, ended);
    }
    return ExitCode.ok;
  },
};

function tokenOf({ token }: { token: bigint }): bigint {
  return token;
}
