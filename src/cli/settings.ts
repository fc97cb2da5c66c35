/** The options that several commands share, and how they become options of the library. */
import { basename } from "node:path";
import type { AcquireOptions } from "../options/options.js";
import { type Arguments, type OptionSpecs, UsageError } from "./arguments.js";
import { formatDuration } from "./duration.js";
import { ExitCode } from "./exit-code.js";
import { leastGraceMs } from "./held-command.js";
import type { CommandLine } from "./launcher.js";

export const STORE_OPTIONS: OptionSpecs = {
  store: {
    value: "URL",
    help: "where the lock lives; default: HOLDFAST_STORE, else a file of this user",
  },
};

export const OUTPUT_OPTIONS: OptionSpecs = {
  quiet: { short: "q", help: "say nothing but errors" },
  verbose: { short: "v", help: "tell every step" },
};

/** For verbs that run a command, to which stdout belongs. */
export const EVENT_OPTIONS: OptionSpecs = {
  json: { help: "tell every step as JSON lines, on stderr" },
  "json-fd": { value: "N", help: "the same, on file descriptor N" },
};

export const WAIT_OPTIONS: OptionSpecs = {
  nonblock: { short: "n", help: "do not wait" },
  wait: { short: "w", value: "SECS", help: "wait no longer than this (seconds, or 5m, 1h)" },
  timeout: { value: "SECS", help: "the same as --wait" },
  "conflict-exit-code": {
    short: "E",
    value: "CODE",
    help: "exit code when not acquired; default 1",
  },
};

export const MODE_OPTIONS: OptionSpecs = {
  shared: { short: "s", help: "hold it together with other shared holders" },
  exclusive: { short: "x", help: "hold it alone (default)" },
  slots: { short: "j", value: "N", help: "at most N holders at a time" },
};

export const ABOUT_OPTIONS: OptionSpecs = {
  reason: { value: "TEXT", help: "why it is held, for those who wait" },
  meta: { value: "KEY=VALUE", many: true, help: "more about the holder; may be repeated" },
  fair: { help: "strictly first come, first served, also among waiters of one process" },
};

export const LEASE_OPTIONS: OptionSpecs = {
  ttl: { value: "TIME", help: "how long the lock outlives a crash of this host; default 30s" },
  grace: { value: "TIME", help: "from SIGTERM to SIGKILL when the command has to end; default 5s" },
};

export const COMMAND_OPTIONS: OptionSpecs = {
  command: { short: "c", value: "LINE", help: "run LINE by sh instead of a command" },
  "export-store": { help: "give the command HOLDFAST_STORE; it may hold a password" },
};

const DEFAULT_TTL_MS = 30_000;
const DEFAULT_GRACE_MS = 5_000;

/** How long to wait: 0 with `-n`; forever without `-n` and `-w`. */
export function waitMsOf(args: Arguments, defaultMs: number = Number.POSITIVE_INFINITY): number {
  const given = ["nonblock", "wait", "timeout"].filter((name) => args.has(name));
  if (given.length > 1) throw new UsageError("Give only one of -n, --wait and --timeout.");
  if (args.has("nonblock")) return 0;
  return args.durationMs("wait") ?? args.durationMs("timeout") ?? defaultMs;
}

export function conflictCodeOf(args: Arguments): number {
  return args.count("conflict-exit-code", 0, 255) ?? ExitCode.notAcquired;
}

export function ttlMsOf(args: Arguments): number {
  return args.durationMs("ttl") ?? DEFAULT_TTL_MS;
}

/** Below half of the ttl; a default that does not fit shrinks, a given one is refused. */
export function graceMsOf(args: Arguments, ttlMs: number): number {
  const givenMs = args.durationMs("grace");
  if (givenMs === undefined) return Math.min(DEFAULT_GRACE_MS, ttlMs / 3);
  if (givenMs < ttlMs / 2) return Math.max(givenMs, leastGraceMs(ttlMs));
  throw new UsageError(
    `--grace ${formatDuration(givenMs)} is too long: it must be below half of the ttl ` +
      `(${formatDuration(ttlMs)}). Give a shorter --grace or a longer --ttl.`,
  );
}

/** The meta of the holder. `label` is the name of the command, without arguments. */
export function metaOf(args: Arguments, label: string): Record<string, string> {
  const meta: Record<string, string> = { label };
  for (const text of args.texts("meta")) {
    const at = text.indexOf("=");
    if (at < 1) throw new UsageError(`--meta ${JSON.stringify(text)} is no KEY=VALUE.`);
    meta[text.slice(0, at)] = text.slice(at + 1);
  }
  const reason = args.text("reason");
  if (reason !== undefined) meta.reason = reason;
  return meta;
}

export function fairnessOf(args: Arguments): Pick<AcquireOptions, "fairness"> {
  return args.has("fair") ? { fairness: "strict" } : {};
}

/** The command behind the name or `--`, or the line of `-c`. */
export function commandLineOf(args: Arguments): CommandLine {
  const line = args.text("command");
  const [file, ...rest] = args.rest ?? [];
  if (line !== undefined) {
    if (file === undefined) return { file: "/bin/sh", args: ["-c", line] };
    throw new UsageError("Give a command or a line with -c, not both.");
  }
  if (file !== undefined) return { file, args: rest };
  throw new UsageError("The command is missing: put it last, as in: -- ./backup.sh --full");
}

export function labelOf(args: Arguments, { file }: CommandLine): string {
  return args.has("command") ? "sh -c" : basename(file);
}
