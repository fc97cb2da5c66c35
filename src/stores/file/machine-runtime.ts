import { closeSync, openSync, readFileSync, readlinkSync, readSync } from "node:fs";
import { hostname } from "node:os";
import { UnsupportedError } from "../../errors/index.js";
import { machineClock } from "../../time/clock.js";
import { idsOf, TEXT_BYTES } from "../../time/random.js";
import { localRuntime, type Runtime } from "../../time/runtime.js";

/** Readings of one moment differ by less; a machine takes longer to start its first program. */
const SAME_MS = 100;

/**
 * Throws where `process.hrtime` counts from the start of the process instead of the machine: Bun
 * and Deno do. There an older process would take the lease of a younger one for long expired.
 */
export function assertMachineClock(
  nowMs: number = machineClock.nowMs(),
  processMs: number = process.uptime() * 1000,
): void {
  if (Math.abs(nowMs - processMs) > SAME_MS) return;
  const { bun, deno } = process.versions as Partial<Record<string, string>>;
  const runtime = bun ? `Bun ${bun}` : deno ? `Deno ${deno}` : "This runtime";
  const why = "its process.hrtime is not the clock of the machine, which processes must share";
  throw new UnsupportedError(`${runtime} cannot use the file store: ${why}. Use another store.`, {
    store: "file",
  });
}

/**
 * Straight from the system where it has a file for that: a command that lives for a moment spends
 * most of it loading Node's cryptography otherwise.
 */
function drawText(): string {
  const random = Buffer.alloc(TEXT_BYTES);
  const file = openSync("/dev/urandom", "r");
  try {
    for (let read = 0; read < TEXT_BYTES; ) read += readSync(file, random, { offset: read });
  } finally {
    closeSync(file);
  }
  return random.toString("hex");
}

const id = process.platform === "win32" ? localRuntime.random.id : idsOf(drawText);

/** All processes keep leases by one clock; it stands still while the machine sleeps, as they do. */
export const machineRuntime: Runtime = {
  ...localRuntime,
  random: { ...localRuntime.random, id },
  clock: machineClock,
};

let identity: string | undefined;

/**
 * Whose monotonic clock the times in the file belong to: this boot of this machine, seen from this
 * time namespace (a container may run by a clock of its own).
 */
export function machineIdentity(): string {
  identity ??= `${bootId()} ${timeNamespace()}`;
  return identity;
}

function bootId(): string {
  if (process.platform === "linux") {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  }
  if (process.platform === "darwin") {
    const { execFileSync } = process.getBuiltinModule("node:child_process");
    return execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], {
      encoding: "utf8",
    }).trim();
  }
  // No id of the boot to be had: leases of before a restart are told by their impossible times.
  return hostname();
}

function timeNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/time");
  } catch {
    return "time:none";
  }
}
