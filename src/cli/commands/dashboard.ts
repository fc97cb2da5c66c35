import { appendFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import type { AuditLine, ServeOptions } from "../../dashboard/index.js";
import type { Holdfast } from "../../holdfast.js";
import { type Arguments, UsageError } from "../arguments.js";
import type { Command } from "../command.js";
import { ExitCode } from "../exit-code.js";
import { openStore, storeUrlOf } from "../open-store.js";
import { print, tell, writeLine } from "../output.js";
import { toJson } from "../plain-text.js";
import { withoutSecrets } from "../secrets.js";
import { STORE_OPTIONS } from "../settings.js";
import { Signals } from "../signals.js";

const STDERR = 2;
const MOST_PORT = 65_535;

export const dashboard: Command = {
  usage: ["[OPTIONS]"],
  about:
    "Serves a page that shows the locks of the store, live, to browsers of this machine, and " +
    "prints its URL. The part of the URL after # is a secret of this start: all who have it see " +
    "the locks. It runs until it is interrupted. For a host without a browser, pass the port on " +
    "by ssh: ssh -L 8080:127.0.0.1:8080 HOST.",
  options: {
    port: { value: "N", help: "the port at 127.0.0.1; default: a free one" },
    "allow-revoke": { help: "let the page revoke leases; without it the page only reads" },
    audit: { value: "FILE", help: "append revocations to FILE as JSON lines; default: to stderr" },
    ...STORE_OPTIONS,
  },
  examples: [
    ["holdfast dashboard --store redis://localhost", "look"],
    ["holdfast dashboard --allow-revoke --audit audit.jsonl", "look, and revoke"],
  ],

  async run(args) {
    args.none();
    const port = args.count("port", 1, MOST_PORT) ?? 0;
    if (args.has("audit") && !args.has("allow-revoke")) {
      throw new UsageError("--audit needs --allow-revoke: the audit is of revocations.");
    }
    using signals = new Signals();
    await using locks = await openStore(args, signals.interrupted);
    const board = await serve(locks, {
      port,
      title: titleOf(storeUrlOf(args)),
      actor: actorName(),
      allowRevoke: args.has("allow-revoke"),
      onAudit: (line) => writeAudit(args, line),
    });
    await print([board.url]);
    tell("holdfast: open this URL in a browser of this machine; Ctrl-C ends the dashboard.");
    await new Promise((resolve) => {
      if (signals.interrupted.aborted) resolve(null);
      signals.interrupted.addEventListener("abort", resolve);
    });
    await board.close();
    return ExitCode.ok;
  },
};

async function serve(locks: Holdfast, options: ServeOptions) {
  const { serveDashboard } = await import("../../dashboard/index.js");
  try {
    return await serveDashboard(locks, options);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new UsageError(`Port ${options.port} is taken: give another, or none for a free one.`);
  }
}

/** A line that cannot be written stops the revocation. */
function writeAudit(args: Arguments, line: AuditLine): void {
  const file = args.text("audit");
  if (file === undefined) writeLine(STDERR, toJson(line));
  else appendFileSync(file, `${toJson(line)}\n`);
}

function actorName(): string {
  return `${userInfo().username} on ${hostname()}`;
}

/** The scheme and the host: no password, and no parameters, which may hold one. */
function titleOf(url: string): string {
  return withoutSecrets(url)
    .replace(/\/\/[^/@]*@/, "//")
    .replace(/[?#].*$/, "");
}
