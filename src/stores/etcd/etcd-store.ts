import { InvalidOptionError } from "../../errors.js";
import type { Store } from "../../store.js";
import { networkPort } from "../../time/port.js";
import { SequencerStore } from "../sequencer/sequencer-store.js";
import type { EtcdClient } from "./etcd-client.js";
import { EtcdSequencer } from "./etcd-sequencer.js";

export interface EtcdStoreOptions {
  /** An `Etcd3` of the package `etcd3`. It is not closed with the store. */
  readonly client: EtcdClient;
  /**
   * Locks of different namespaces never meet. Default: none, and then a lock is where `etcdctl
   * lock` and Go's concurrency package look for it.
   */
  readonly namespace?: string;
}

/**
 * Locks in etcd 3.4 or later.
 *
 * @example
 * const locks = new Holdfast(etcdStore({ client: new Etcd3({ hosts: ["http://127.0.0.1:2379"] })
 * }));
 */
export function etcdStore({ client, namespace = "" }: EtcdStoreOptions): Store {
  return makeEtcdStore(client, namespace, () => {});
}

export function makeEtcdStore(
  client: EtcdClient,
  namespace: string,
  closeClient: () => void,
  hosts = "",
): Store {
  if (typeof namespace !== "string" || /\p{Surrogate}/u.test(namespace)) {
    throw new InvalidOptionError("namespace", namespace, "must be a well-formed string");
  }
  const options = { namespace, hosts, closeClient };
  return new SequencerStore(new EtcdSequencer(client, options, networkPort()));
}
