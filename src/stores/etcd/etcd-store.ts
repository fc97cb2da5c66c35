import { invalidValue } from "../../errors.js";
import { knownOptions } from "../../known-options.js";
import type { Store } from "../../store.js";
import { networkPort } from "../../time/port.js";
import { checkNamespace } from "../namespace.js";
import { SequencerStore } from "../sequencer/sequencer-store.js";
import type { Address } from "../store-url.js";
import type { EtcdClient } from "./etcd-client.js";
import { EtcdSequencer } from "./etcd-sequencer.js";

/** The client to use, and the namespace of the locks. */
export interface EtcdStoreOptions {
  /** An `Etcd3` of the package `etcd3`. It is not closed with the store. */
  readonly client: EtcdClient;
  /**
   * Locks of different namespaces never meet. Default: none, and then a lock is where `etcdctl
   * lock` and Go's concurrency package look for it.
   */
  readonly namespace?: string;
}

const EXAMPLE = "must be an object with the client in it: etcdStore({ client })";

/**
 * Locks in etcd 3.4 or later.
 *
 * @example
 * import { Etcd3 } from "etcd3";
 * import { Holdfast } from "holdfast";
 * import { etcdStore } from "holdfast/etcd";
 *
 * const client = new Etcd3({ hosts: ["http://127.0.0.1:2379"] });
 * const locks = new Holdfast(etcdStore({ client }));
 */
export function etcdStore(options: EtcdStoreOptions): Store {
  if (isClient(options)) throw invalidValue("options", "a client", EXAMPLE);
  const { client, namespace } = knownOptions(options, ["client", "namespace"], EXAMPLE);
  return makeEtcdStore(client, namespace, () => {});
}

/** The servers of an `Etcd3`, which are among its options: `http://host:port`, one or several. */
function serversOf(client: EtcdClient): Address[] {
  const { pool } = client as { pool?: { options?: { hosts?: unknown } } };
  return [pool?.options?.hosts].flat().flatMap((host) => {
    const text = typeof host === "string" ? host.replace(/^https?:\/\//, "") : "";
    const [, name, port] = /^\[?([^/]+?)\]?:(\d+)\/?$/.exec(text) ?? [];
    return name === undefined ? [] : [{ host: name, port: Number(port) }];
  });
}

export function makeEtcdStore(
  client: EtcdClient,
  namespace: string | undefined,
  closeClient: () => void,
  hosts = "",
): Store {
  if (!isClient(client)) {
    const given = client === undefined ? client : `a value of type ${typeof client}`;
    throw invalidValue("client", given, "must be an Etcd3 of the package etcd3");
  }
  const servers = serversOf(client);
  const options = { namespace: checkNamespace(namespace), hosts, servers, closeClient };
  const sequencer = new EtcdSequencer(client, options, networkPort());
  // The client of a URL is ours: `connect` itself warns. That of a user is asked at its first use.
  if (hosts !== "") void sequencer.checkVersion();
  return new SequencerStore(sequencer);
}

function isClient(value: unknown): value is EtcdClient {
  const { kv, leaseClient, watchClient } = (value ?? {}) as Partial<EtcdClient>;
  return [kv, leaseClient, watchClient].every((part) => typeof part === "object");
}
