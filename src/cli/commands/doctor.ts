import type { Examination } from "../../contract/examination.js";
import type { Command } from "../command.js";
import { examinationText } from "../examination-text.js";
import { ExitCode } from "../exit-code.js";
import { openExamined } from "../open-store.js";
import { print } from "../output.js";
import { toJson } from "../plain-text.js";
import { withoutSecrets } from "../secrets.js";
import { STORE_OPTIONS, ttlMsOf } from "../settings.js";
import { Signals } from "../signals.js";

export const doctor: Command = {
  usage: ["[OPTIONS]"],
  about:
    "Examines the store and how it is configured: a line for each check, with cause and remedy, " +
    "then what each failure would do to the locks of this deployment. It changes nothing, and " +
    "says which checks it could not do. The exit code is 1 if there is a danger, with --strict " +
    "also if there is a warning, and 69 if the store cannot be reached.",
  options: {
    ttl: { value: "TIME", help: "the ttl of the locks, to judge times against; default 30s" },
    strict: { help: "exit code 1 also for warnings" },
    json: { help: "one line of JSON on stdout" },
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast doctor --store redis://localhost", "is this server fit for locks?"],
    ["holdfast doctor --ttl 5s --strict", "for a deployment: fail on every warning"],
    ["holdfast doctor --json | jq '.findings[] | select(.severity == \"danger\")'", "for a script"],
  ],

  async run(args) {
    args.none();
    const ttlMs = ttlMsOf(args);
    using signals = new Signals();
    await using locks = await openExamined(args, signals.interrupted);
    const examination = await locks.examine({ ttlMs, signal: signals.interrupted });
    const isJson = args.has("json");
    const lines = isJson ? [toJson(examination)] : examinationText(examination, ttlMs);
    await print(lines.map(withoutSecrets));
    return codeOf(examination, args.has("strict"));
  },
};

function codeOf({ findings }: Examination, isStrict: boolean): number {
  const bad = findings.some(({ severity }) => {
    return severity === "danger" || (isStrict && severity === "warning");
  });
  return bad ? ExitCode.unfit : ExitCode.ok;
}
