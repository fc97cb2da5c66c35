import { UnsupportedError } from "../../errors.js";
import type { Grant } from "../../store.js";
import { SequencerGrant } from "../sequencer/sequencer-grant.js";
import { EtcdEntry } from "./etcd-entry.js";

/** The arguments of `if` and `and` of an `etcd3` transaction. */
export type EtcdGuard = readonly [key: Buffer, column: "Create", comparator: "==", value: string];

/**
 * The condition that a lease still holds, for transactions of your own: etcd itself then refuses
 * the write of a stale holder, however late it arrives. The client must have no namespace of its
 * own. Throws `UnsupportedError` for a lease that is not of an etcd store.
 *
 * @example
 * import { guard } from "holdfast/etcd";
 *
 * const write = etcd.put("config").value("new");
 * const { succeeded } = await etcd.if(...guard(lease)).then(write).commit();
 * if (!succeeded) throw new Error("a newer holder was here");
 */
export function guard(lease: object): EtcdGuard {
  const { hold } = lease as { readonly hold?: { readonly grant: Grant } };
  const grant = hold?.grant;
  if (grant instanceof SequencerGrant && grant.entry instanceof EtcdEntry) {
    return [grant.entry.key, "Create", "==", String(grant.token)];
  }
  throw new UnsupportedError(
    "Only a lease of an etcd store has a guard; where runs are nested, the one of the outermost.",
  );
}
