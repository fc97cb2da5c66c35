import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

let known: string | undefined;

/**
 * Whose monotonic clock the times in the file belong to: this boot of this machine, seen from this
 * time namespace (a container may run by a clock of its own).
 */
export function machineIdentity(): string {
  known ??= `${bootId()} ${timeNamespace()}`;
  return known;
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
