/** The conditions and operations of which the transactions of this store consist. */
import type { Compare, RequestOp } from "./etcd-client.js";

export function put(key: Buffer, text: string, lease: string): RequestOp {
  return { request_put: { key, value: Buffer.from(text), lease } };
}

/** Writes into a key that exists, and leaves it bound to its lease. */
export function rewrite(key: Buffer, text: string): RequestOp {
  return { request_put: { key, value: Buffer.from(text), ignore_lease: true } };
}

export function remove(key: Buffer): RequestOp {
  return { request_delete_range: { key } };
}

export function isAbsent(key: Buffer): Compare {
  return wasMadeAt(key, 0n);
}

export function wasMadeAt(key: Buffer, revision: bigint): Compare {
  return { result: "Equal", target: "Create", key, create_revision: String(revision) };
}

export function isAt(key: Buffer, revision: bigint | string): Compare {
  return { result: "Equal", target: "Mod", key, mod_revision: String(revision) };
}
