/**
 * Lease ids: signed numbers in requests to etcd, and hexadecimal digits in keys.
 */
import type { Port } from "../../time/port.js";

/** Chosen by us, not by etcd: a request that is repeated then makes the same lease again. */
export function newLeaseId(port: Port): string {
  return BigInt(`0x1${port.random.id().slice(0, 14)}`).toString(16);
}

/** The number of a lease, as requests have it. */
export function leaseNumber(leaseId: string): string {
  const [, sign = "", digits = ""] = /^(-?)(.*)$/.exec(leaseId) ?? [];
  return sign + BigInt(`0x${digits}`);
}

/** The id of the lease that a key is bound to; "0" where there is none. */
export function leaseIdOf({ lease }: { readonly lease: string }): string {
  return BigInt(lease).toString(16);
}
