import { Holdfast } from "../../src/api/holdfast.js";
import { openZookeeperStore } from "../../src/stores/zookeeper/index.js";
import { StoreTrial } from "../stores/trial.js";

export class ZookeeperTrial extends StoreTrial {
  /** `rest`: the part of the URL behind `zookeeper://`. */
  async open(rest: string, scheme = "zookeeper"): Promise<Holdfast> {
    const store = await openZookeeperStore(new URL(`${scheme}://${rest}`));
    return this.add(new Holdfast(store, { ttlMs: 10_000 }));
  }
}
