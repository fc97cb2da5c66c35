import { Holdfast } from "../../src/holdfast.js";
import { openZookeeperStore } from "../../src/stores/zookeeper/index.js";
import { type FaultProxy, type ProxyOptions, startProxy } from "../faults/proxy.js";

/** Opens clients and proxies, and closes all of them. */
export class ZookeeperTrial {
  readonly #clients: Holdfast[] = [];
  readonly #proxies: FaultProxy[] = [];

  /** `rest`: the part of the URL behind `zookeeper://`. */
  async open(rest: string, scheme = "zookeeper"): Promise<Holdfast> {
    const store = await openZookeeperStore(new URL(`${scheme}://${rest}`));
    const locks = new Holdfast(store, { ttlMs: 10_000 });
    this.#clients.push(locks);
    return locks;
  }

  async proxy(options: ProxyOptions): Promise<FaultProxy> {
    const proxy = await startProxy(options);
    this.#proxies.push(proxy);
    return proxy;
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.splice(0).map((locks) => locks.close()));
    await Promise.all(this.#proxies.splice(0).map((proxy) => proxy.close()));
  }
}
