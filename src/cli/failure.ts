import {
  AcquireTimeoutError,
  HoldfastError,
  InvalidOptionError,
  LeaseLostError,
  StoreError,
  UnsupportedError,
} from "../errors/index.js";
import { codeOfSignal, ExitCode, Interrupted } from "./exit-code.js";
import { LaunchError } from "./launcher.js";
import { OutputError } from "./output.js";

export interface Failure {
  /** Empty where there is no message. */
  readonly text: string;
  /** Where an internal error comes from, one line for each call. */
  readonly trace?: readonly string[];
  readonly exitCode: number;
}

/** The message and the exit code for an error that ended a command. */
export function explainFailure(error: unknown, isVerbose: boolean): Failure {
  if (error instanceof Interrupted) return { text: "", exitCode: codeOfSignal(error.signal) };
  if (error instanceof LaunchError) return { text: error.message, exitCode: error.exitCode };
  if (error instanceof HoldfastError) {
    const more = isVerbose && error.cause ? ` Cause: ${messageOf(error.cause)}` : "";
    return { text: inOptions(error.message) + more, exitCode: codeOf(error) };
  }
  if (error instanceof OutputError) return { text: error.message, exitCode: ExitCode.cannotWrite };
  const trace = isVerbose && error instanceof Error ? (error.stack ?? "").split("\n") : [];
  const hint = isVerbose ? "" : " Run it with -v to see where, and please report it.";
  const text = `Internal error: ${messageOf(error)}${hint}`;
  return { text, trace, exitCode: ExitCode.internal };
}

function codeOf(error: HoldfastError): number {
  if (error instanceof InvalidOptionError || error instanceof UnsupportedError) {
    return ExitCode.usage;
  }
  if (error instanceof StoreError) return ExitCode.storeUnreachable;
  if (error instanceof LeaseLostError) return ExitCode.leaseLost;
  if (error instanceof AcquireTimeoutError) return ExitCode.notAcquired;
  return ExitCode.internal;
}

const OPTION_NAMES: Readonly<Record<string, string>> = {
  ttlMs: "--ttl (in ms)",
  graceMs: "--grace (in ms)",
  waitMs: "-w (in ms)",
  keepMs: "--keep (in ms)",
  url: "store URL",
};

/** The library names its own options; on the command line they have other names. */
function inOptions(message: string): string {
  return message.replace(/\b(?:ttlMs|graceMs|waitMs|keepMs|url)\b/g, (name) => {
    return OPTION_NAMES[name] ?? name;
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
