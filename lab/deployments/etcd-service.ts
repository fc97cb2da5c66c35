import { type EtcdCluster, type EtcdServer, startEtcdCluster } from "../../test/servers/etcd.js";
import { LOCK_NAME } from "../orders.js";
import type { Service } from "./service-deployment.js";
import { etcdWire, type Wire } from "./wire.js";

/** One member of etcd, or a cluster of three. */
export class EtcdService implements Service {
  readonly versions: Readonly<Record<string, string>>;
  readonly wire: Wire = etcdWire(() => this.#isTaken());
  readonly succession = "leader dies, another member takes over";
  readonly #cluster: EtcdCluster;

  constructor(cluster: EtcdCluster, versions: Readonly<Record<string, string>>) {
    this.#cluster = cluster;
    this.versions = versions;
  }

  static async start(members: number): Promise<EtcdService> {
    const cluster = await startEtcdCluster(members);
    const leader = await cluster.leader();
    const { version } = (await leader.post("/v3/maintenance/status")) as { version: string };
    return new EtcdService(cluster, { etcd: version });
  }

  get ports(): readonly number[] {
    return this.#cluster.members.map(({ port }) => port);
  }

  async restartEmpty(): Promise<void> {
    await Promise.all(this.#cluster.members.map((member) => member.restart({ keepData: false })));
  }

  cutFollowers(): void {}

  async failOver(): Promise<null> {
    await (await this.#cluster.leader()).kill();
    await this.#cluster.leader();
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cluster[Symbol.asyncDispose]();
  }

  get #anyMember(): EtcdServer {
    const [member] = this.#cluster.members;
    if (!member) throw new Error("a cluster has a member");
    return member;
  }

  /** Whether there is a key with the name of the lock in it, of whatever program. */
  async #isTaken(): Promise<boolean> {
    const all = Buffer.alloc(1).toString("base64");
    const reply = await this.#anyMember.post("/v3/kv/range", { key: all, range_end: all });
    const { kvs = [] } = reply as { kvs?: readonly { key: string }[] };
    return kvs.some(({ key }) => Buffer.from(key, "base64").includes(LOCK_NAME));
  }
}
