import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { PeerNetwork } from "./peer-network.js";
import { closeAll, ServerProcess, startAll, startOrClose } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

export interface EtcdOptions {
  /** Arguments after the default ones. The timing is etcd's default, with leases from 2 s on. */
  readonly args?: readonly string[];
  /** It also listens at `tlsPort`, for clients with a certificate of the same authority. */
  readonly certificates?: Certificates;
}

/** Paths of PEM files. */
interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

interface Member {
  readonly name: string;
  readonly port: number;
  readonly peerPort: number;
  /** The port at which other members reach it. */
  readonly gatePort: number;
  readonly tlsPort: number;
}

/** One member of an etcd cluster. After `kill` or `stop`, `start` restarts it with its data. */
export class EtcdServer extends ServerProcess {
  readonly port: number;
  readonly tlsPort: number;
  readonly #member: Member;
  readonly #options: EtcdOptions;
  readonly #peers: readonly string[];

  constructor(member: Member, cluster: readonly Member[], options: EtcdOptions) {
    super("etcd");
    this.port = member.port;
    this.tlsPort = member.tlsPort;
    this.#member = member;
    this.#options = options;
    this.#peers = cluster.map(({ name, gatePort }) => `${name}=http://127.0.0.1:${gatePort}`);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  protected launch(): Launch {
    const { name, peerPort, gatePort } = this.#member;
    const [peerUrl, gateUrl] = [peerPort, gatePort].map((port) => `http://127.0.0.1:${port}`);
    const args = ["--name", name, "--data-dir", join(this.dir, "data"), "--logger", "zap"];
    const { certificates, args: others = [] } = this.#options;
    const urls = certificates ? [this.url, `https://127.0.0.1:${this.tlsPort}`] : [this.url];
    args.push("--listen-client-urls", urls.join(","), "--advertise-client-urls", urls.join(","));
    if (certificates) {
      const { ca, cert, key } = certificates;
      args.push("--cert-file", cert, "--key-file", key);
      args.push("--client-cert-auth", "--trusted-ca-file", ca);
    }
    args.push("--listen-peer-urls", `${peerUrl}`, "--initial-advertise-peer-urls", `${gateUrl}`);
    args.push("--initial-cluster", this.#peers.join(","), ...others);
    // Variables that begin with ETCD_ would be options. On ARM etcd requires one of them.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("ETCD_"));
    const architecture = process.arch === "arm64" ? "arm64" : "";
    const env = { ...Object.fromEntries(inherited), ETCD_UNSUPPORTED_ARCH: architecture };
    return { command: "etcd", args, env };
  }

  protected async isReady(): Promise<boolean> {
    if (!(await this.isHealthy())) return false;
    try {
      const { members } = (await this.post("/v3/cluster/member/list")) as { members: Member[] };
      return members.some(({ name }) => name === this.#member.name);
    } catch (error) {
      // From 3.6 on, a server with users tells its members to users only.
      if (String(error).includes("user name is empty")) return true;
      throw error;
    }
  }

  /** Whether it has a leader and accepts writes. Rejects when it does not answer. */
  async isHealthy(): Promise<boolean> {
    const reply = (await call("GET", `${this.url}/health`)) as { health: string };
    return reply.health === "true";
  }

  /** One call of the JSON gateway: keys and values are base64, numbers are strings. */
  post(path: string, body: object = {}): Promise<unknown> {
    return call("POST", `${this.url}${path}`, body);
  }

  /** Its own id and the id of its leader ("0": none). */
  async view(): Promise<{ readonly id: string; readonly leader: string }> {
    const status = await this.post("/v3/maintenance/status");
    const { leader, header } = status as { leader: string; header: { member_id: string } };
    return { id: header.member_id, leader };
  }

  /** Kills it and starts it on the same port. A member of a cluster must keep its data. */
  async restart({ keepData }: { readonly keepData: boolean }): Promise<void> {
    await this.kill();
    if (!keepData) await rm(join(this.dir, "data"), { recursive: true, force: true });
    await this.start();
  }
}

export class EtcdCluster implements AsyncDisposable {
  readonly members: readonly EtcdServer[];
  readonly #network: PeerNetwork;

  constructor(members: readonly EtcdServer[], network: PeerNetwork) {
    this.members = members;
    this.#network = network;
  }

  get urls(): readonly string[] {
    return this.members.map((member) => member.url);
  }

  /**
   * The leader of all members in `among` (default: all that run), after the election has ended. A
   * paused member does not answer: leave it out.
   */
  async leader(among?: readonly EtcdServer[]): Promise<EtcdServer> {
    let leader: EtcdServer | undefined;
    const ask = async () => {
      const asked = among ?? this.members.filter((member) => member.running);
      const views = await Promise.all(asked.map((member) => member.view()));
      const index = views.findIndex(({ id }) => views.every((view) => view.leader === id));
      leader = asked[index];
      return leader !== undefined;
    };
    await waitUntil(ask, { what: "the etcd cluster has a leader", everyMs: 50 });
    return leader as unknown as EtcdServer;
  }

  /** Cuts one member off from all other members; clients still reach it. */
  async cutOff(member: EtcdServer): Promise<void> {
    const { id } = await member.view();
    this.#network.cutOff(BigInt(id).toString(16), this.members.indexOf(member));
  }

  heal(): void {
    this.#network.heal();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeAll(this.members);
    await this.#network[Symbol.asyncDispose]();
  }
}

export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  return await onFreePorts(3, async ([port = 0, peerPort = 0, tlsPort = 0]) => {
    const member = { name: memberName(), port, peerPort, gatePort: peerPort, tlsPort };
    return await startOrClose(new EtcdServer(member, [member], options));
  });
}

export async function startEtcdCluster(count = 3, options: EtcdOptions = {}): Promise<EtcdCluster> {
  return await onFreePorts(3 * count, async (ports) => {
    const network = await PeerNetwork.open(ports.filter((_, at) => at % 3 === 1));
    const cluster = network.ports.map((gatePort, index) => {
      const [port = 0, peerPort = 0, tlsPort = 0] = ports.slice(3 * index);
      return { name: memberName(), port, peerPort, gatePort, tlsPort };
    });
    try {
      const members = cluster.map((member) => new EtcdServer(member, cluster, options));
      return new EtcdCluster(
        await startAll(members.map((member) => startOrClose(member))),
        network,
      );
    } catch (error) {
      await network[Symbol.asyncDispose]();
      throw error;
    }
  });
}

function memberName(): string {
  return `member-${randomUUID()}`;
}

// A new connection for each call: an old one could belong to the server before a restart.
function call(method: string, url: string, body?: object): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, agent: false, timeout: 5000 }, (incoming) => {
      let text = "";
      incoming.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      incoming.on("error", reject);
      incoming.on("end", () => {
        if (incoming.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`${method} ${url}: ${incoming.statusCode} ${text}`));
      });
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${method} ${url}: no answer`)));
    outgoing.on("error", reject);
    outgoing.end(body && JSON.stringify(body));
  });
}
