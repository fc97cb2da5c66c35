import type { WarningEvent } from "../../events.js";
import { events } from "../../publish.js";

/** Major, minor and patch. */
export function partsOf(version: string): [number, number, number] {
  const [major = 0, minor = 0, patch = 0] = version
    .split(".")
    .map((part) => Number.parseInt(part, 10));
  return [major, minor, patch];
}

/**
 * Whether a member that lost the lead, and was stopped meanwhile, may end leases that the new
 * leader keeps. etcd 3.4.31 and 3.5.13 ignore such a request of an old leader.
 */
export function mayEndLiveLeases(version: string): boolean {
  const [major, minor, patch] = partsOf(version);
  if (major !== 3 || minor < 4) return major < 4;
  return (minor === 4 && patch < 31) || (minor === 5 && patch < 13);
}

export const UPGRADE = "Upgrade etcd to 3.5.13 or later, and use guard() for writes to etcd.";

const CODE = "HF_ETCD_ENDS_LIVE_LEASES";

let hasWarned = false;

/** Publishes a warning; the first one of this process is a process warning as well. */
export function warnOfVersion(version: string, namespace: string): void {
  const message =
    `etcd ${version} may end live leases after its leader changed, and then two processes may ` +
    "hold the same lock.";
  const warning = { store: "etcd", namespace, code: CODE, message, remedy: UPGRADE };
  events.warning.publish(warning satisfies WarningEvent);
  if (hasWarned) return;
  hasWarned = true;
  process.emitWarning(`${message} ${UPGRADE}`, { type: "HoldfastWarning", code: CODE });
}
