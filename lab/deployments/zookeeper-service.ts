import {
  startZookeeper,
  startZookeeperEnsemble,
  type ZookeeperEnsemble,
  type ZookeeperServer,
} from "../../test/servers/zookeeper.js";
import type { Service } from "./service-deployment.js";
import { type Wire, zookeeperWire } from "./wire.js";

/** One server of ZooKeeper, or an ensemble of three. */
export class ZookeeperService implements Service {
  readonly versions: Readonly<Record<string, string>>;
  readonly wire: Wire = zookeeperWire;
  readonly succession = "leader dies, another member takes over";
  readonly #one: ZookeeperServer | ZookeeperEnsemble;

  constructor(
    one: ZookeeperServer | ZookeeperEnsemble,
    versions: Readonly<Record<string, string>>,
  ) {
    this.#one = one;
    this.versions = versions;
  }

  static async start(members: number): Promise<ZookeeperService> {
    const one = members > 1 ? await startZookeeperEnsemble(members) : await startZookeeper();
    const [first] = serversOf(one);
    const told = (await first?.ask("srvr")) ?? "";
    const [, zookeeper = "unknown"] = /^Zookeeper version: ([\d.]+)/m.exec(told) ?? [];
    return new ZookeeperService(one, { zookeeper });
  }

  get ports(): readonly number[] {
    return serversOf(this.#one).map(({ port }) => port);
  }

  async restartEmpty(): Promise<void> {
    await Promise.all(serversOf(this.#one).map((server) => server.restart({ keepData: false })));
  }

  cutFollowers(): void {}

  async failOver(): Promise<null> {
    if (!("members" in this.#one)) throw new Error("one server has no successor");
    await (await this.#one.leader()).kill();
    await this.#one.leader();
    return null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#one[Symbol.asyncDispose]();
  }
}

function serversOf(one: ZookeeperServer | ZookeeperEnsemble): readonly ZookeeperServer[] {
  return "members" in one ? one.members : [one];
}
