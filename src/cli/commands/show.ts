import type { LockView, Meta } from "../../contract/store.js";
import type { Command } from "../command.js";
import { formatDuration } from "../duration.js";
import { ExitCode } from "../exit-code.js";
import { sinceText, textOf, whoIs } from "../holder-text.js";
import { kindOf } from "../lock-table.js";
import { openCliStore, storeNameOf } from "../open-cli-store.js";
import { print } from "../output.js";
import { toJson } from "../plain-text.js";
import { STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";
import { KIND_OPTIONS, spaceOf, viewsOf } from "../spaces.js";

export const show: Command = {
  usage: ["[OPTIONS] NAME"],
  about:
    "Shows the holders of NAME, since when and for how long, its waiters in their order, and the " +
    "store that was asked.",
  options: {
    json: { help: "JSON lines on stdout, tokens as strings" },
    ...KIND_OPTIONS,
    ...STORE_OPTIONS,
  },
  examples: [["holdfast show deploy", "who is in the way"]],

  async run(args) {
    const name = args.one("NAME");
    const space = spaceOf(args);
    using signals = new Signals();
    await using locks = await openCliStore(args, signals.interrupted);
    const views = await viewsOf(locks, name, space);
    const store = await storeNameOf(args);
    if (args.has("json")) {
      const shown = views.length > 0 ? views : [await locks.inspect(name, space ?? "lock")];
      await print(shown.map((view) => toJson({ ...view, store })));
    } else if (views.length === 0) await print([`${name} is free in ${store}`]);
    else await print(views.flatMap((view) => describe(view, store)));
    return ExitCode.ok;
  },
};

function describe(view: LockView, store: string): string[] {
  const lines = [`${view.name} (${kindOf(view)}) in ${store}`];
  for (const { token, meta, heldMs, remainingMs, weight } of view.holders) {
    const permits = weight > 1 ? `, weight ${weight}` : "";
    lines.push(
      `  held by ${whoIs(meta)}`,
      `    since   ${sinceText(heldMs)} (${formatDuration(heldMs)})`,
      `    expires in ${formatDuration(remainingMs)} unless renewed`,
      `    token   ${token}${permits}`,
      ...more(meta),
    );
  }
  if (view.mark) {
    const { token, meta, remainingMs } = view.mark;
    const left = formatDuration(remainingMs);
    lines.push(`  done by ${whoIs(meta)}, token ${token}, remembered for another ${left}`);
  }
  view.waiters.forEach(({ meta, waitedMs, mode }, index) => {
    const how = mode === "shared" ? ", shared" : "";
    lines.push(`  ${index + 1}. waits: ${whoIs(meta)} for ${formatDuration(waitedMs)}${how}`);
  });
  return lines;
}

function more({ label: _label, host: _host, pid: _pid, ...rest }: Meta): string[] {
  return Object.entries(rest).map(([key, value]) => `    ${key.padEnd(7)} ${textOf(value)}`);
}
