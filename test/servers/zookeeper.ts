import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { onFreePorts } from "./free-port.js";
import type { Launch } from "./owned-process.js";
import { closeAll, ServerProcess, startAll, startOrClose } from "./server-process.js";
import { waitUntil } from "./wait-until.js";

export interface ZookeeperOptions {
  /** Default 1,000. A session lasts for 2 to 20 ticks, unless the bounds are given. */
  readonly tickMs?: number;
  readonly minSessionMs?: number;
  readonly maxSessionMs?: number;
  /** Further lines of the configuration, as `name=value`. */
  readonly lines?: readonly string[];
  /** Further system properties of Java, as `name=value`. */
  readonly properties?: readonly string[];
  /** It also listens at `tlsPort`, for clients with a certificate of the same authority. */
  readonly certificates?: Certificates;
}

/** Paths of PEM files; `identity` has a certificate and its key. */
interface Certificates {
  readonly ca: string;
  readonly identity: string;
}

interface Member {
  readonly id: number;
  readonly port: number;
  readonly tlsPort: number;
  /** The port at which it serves followers while it leads. */
  readonly leaderPort: number;
  readonly electionPort: number;
}

/** A program that starts Java with the classes of another ZooKeeper. */
const STARTER = "zookeeper-java";
const DEBIAN_JARS = ["zookeeper", "slf4j-simple", "netty-codec", "netty-resolver"].map((name) =>
  join("/usr/share/java", `${name}.jar`),
);

/** A server that finds no leader asks the others again after up to a minute by default. */
const QUICK_ELECTIONS = [
  "zookeeper.fastleader.maxNotificationInterval=500",
  "zookeeper.cnxTimeout=1000",
];

/**
 * A server that was elected waits so long for followers before it takes part in the next election,
 * which is the end of many elections on a busy machine.
 */
const INIT_MS = 5_000;
/** A server that is silent for so long is no follower, and no leader, any more. */
const SYNC_MS = 3_000;

/** The reason why no server can be started; null when one can. */
export function zookeeperMissing(): string | null {
  const onPath = (program: string): boolean =>
    (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
  if (onPath(STARTER)) return null;
  const hasAll = onPath("java") && DEBIAN_JARS.every((jar) => existsSync(jar));
  return hasAll ? null : "not installed: sudo node scripts/servers.mjs zookeeper";
}

/** One server. After `kill` or `stop`, `start` restarts it with its data. */
export class ZookeeperServer extends ServerProcess {
  readonly id: number;
  readonly port: number;
  readonly tlsPort: number;
  readonly #options: ZookeeperOptions;
  readonly #peers: readonly string[];

  /** `peers`: the lines of the configuration that name all servers of the ensemble. */
  constructor({ id, port, tlsPort }: Member, peers: readonly string[], options: ZookeeperOptions) {
    super("zookeeper");
    this.id = id;
    this.port = port;
    this.tlsPort = tlsPort;
    this.#peers = peers;
    this.#options = options;
  }

  get address(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.port };
  }

  protected launch(): Launch {
    mkdirSync(this.#data, { recursive: true });
    writeFileSync(join(this.#data, "myid"), `${this.id}\n`);
    const file = join(this.dir, "zoo.cfg");
    writeFileSync(file, `${this.#configuration().join("\n")}\n`);
    const java = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
    for (const property of [...QUICK_ELECTIONS, ...(this.#options.properties ?? [])]) {
      java.push(`-D${property}`);
    }
    const args = [...java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", file];
    // The shell finds the program on the PATH; without it, Debian's classes are used.
    const script = `if command -v ${STARTER} >/dev/null; then exec ${STARTER} "$@"; fi
exec java -cp ${DEBIAN_JARS.join(":")} "$@"`;
    return { command: "sh", args: ["-c", script, "sh", ...args] };
  }

  protected async isReady(): Promise<boolean> {
    // The folder shows that the answer is from this process.
    if (!(await this.ask("conf")).includes(this.#data)) return false;
    return (await this.mode()) !== null;
  }

  /** The answer to a four-letter word. */
  ask(word: "srvr" | "conf" | "mntr" | "dump" | "wchs"): Promise<string> {
    return new Promise((resolve, reject) => {
      let text = "";
      const socket = connect({ ...this.address, timeout: 5_000 }, () => socket.write(word));
      socket.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      socket.on("timeout", () => socket.destroy(new Error(`no answer to ${word}`)));
      socket.on("error", reject);
      socket.on("close", () => resolve(text));
    });
  }

  /** "leader", "follower", "standalone" and so on; null while it serves no requests. */
  async mode(): Promise<string | null> {
    return /^Mode: ([\w-]+)$/m.exec(await this.ask("srvr"))?.[1] ?? null;
  }

  /** Kills it and starts it on the same port. */
  async restart({ keepData }: { readonly keepData: boolean }): Promise<void> {
    await this.kill();
    if (!keepData) await rm(this.#data, { recursive: true, force: true });
    await this.start();
  }

  get #data(): string {
    return join(this.dir, "data");
  }

  #configuration(): readonly string[] {
    const { tickMs = 1_000, minSessionMs, maxSessionMs, certificates } = this.#options;
    const ticks = (ms: number): number => Math.max(5, Math.ceil(ms / tickMs));
    const lines = [`tickTime=${tickMs}`, `dataDir=${this.#data}`];
    lines.push(`initLimit=${ticks(INIT_MS)}`, `syncLimit=${ticks(SYNC_MS)}`);
    lines.push("clientPortAddress=127.0.0.1", `clientPort=${this.port}`, "maxClientCnxns=0");
    lines.push("admin.enableServer=false", "4lw.commands.whitelist=srvr,conf,mntr,dump,wchs");
    if (minSessionMs !== undefined) lines.push(`minSessionTimeout=${minSessionMs}`);
    if (maxSessionMs !== undefined) lines.push(`maxSessionTimeout=${maxSessionMs}`);
    if (certificates) {
      lines.push(`secureClientPort=${this.tlsPort}`, "secureClientPortAddress=127.0.0.1");
      lines.push("serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory");
      lines.push(`ssl.keyStore.location=${certificates.identity}`, "ssl.keyStore.type=PEM");
      lines.push(`ssl.trustStore.location=${certificates.ca}`, "ssl.trustStore.type=PEM");
    }
    return [...lines, ...this.#peers, ...(this.#options.lines ?? [])];
  }
}

/** The ways from one server to another: to follow it, and to elect with it. */
interface PeerLink {
  readonly following: FaultProxy;
  readonly electing: FaultProxy;
}

/** Several servers. Each reaches each other one through proxies of its own. */
export class ZookeeperEnsemble implements AsyncDisposable {
  readonly members: readonly ZookeeperServer[];
  readonly #links: ReadonlyMap<string, PeerLink>;

  constructor(members: readonly ZookeeperServer[], links: ReadonlyMap<string, PeerLink>) {
    this.members = members;
    this.#links = links;
  }

  /** As `host:port,host:port`. */
  get servers(): string {
    return this.members.map(({ port }) => `127.0.0.1:${port}`).join(",");
  }

  /** The way from a follower to its leader: "requests" go to the leader. */
  link(follower: ZookeeperServer, leader: ZookeeperServer): FaultProxy {
    const link = this.#links.get(linkName(follower, leader));
    if (!link) throw new Error("a server has no link to itself");
    return link.following;
  }

  /** The leader of all servers in `among` (default: all that run), after the election has ended. */
  async leader(among?: readonly ZookeeperServer[]): Promise<ZookeeperServer> {
    let leader: ZookeeperServer | undefined;
    const ask = async () => {
      const asked = among ?? this.members.filter((member) => member.running);
      const modes = await Promise.all(asked.map((member) => member.mode()));
      leader = asked[modes.indexOf("leader")];
      return modes.every((mode) => mode !== null) && leader !== undefined;
    };
    await waitUntil(ask, { what: "the ensemble has a leader", everyMs: 50, timeoutMs: 120_000 });
    return leader as unknown as ZookeeperServer;
  }

  /** All servers that follow, or observe. */
  async followers(): Promise<readonly ZookeeperServer[]> {
    const leader = await this.leader();
    return this.members.filter((member) => member !== leader && member.running);
  }

  /** Loses all messages between a server and the others; clients still reach it. */
  cutOff(member: ZookeeperServer): void {
    for (const [name, { following, electing }] of this.#links) {
      if (!name.split(" to ").includes(`${member.id}`)) continue;
      following.blackhole("both");
      electing.cut();
    }
  }

  async heal(): Promise<void> {
    for (const proxy of this.#proxies) await proxy.heal();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeAll(this.members);
    await closeAll(this.#proxies);
  }

  get #proxies(): readonly FaultProxy[] {
    return proxiesOf(this.#links);
  }
}

export async function startZookeeper(options: ZookeeperOptions = {}): Promise<ZookeeperServer> {
  return await onFreePorts(2, async ([port = 0, tlsPort = 0]) => {
    const member = { id: 1, port, tlsPort, leaderPort: 0, electionPort: 0 };
    return await startOrClose(new ZookeeperServer(member, [], options));
  });
}

/** `observers`: how many of the servers have no vote. */
export async function startZookeeperEnsemble(
  count = 3,
  { observers = 0, ...options }: ZookeeperOptions & { readonly observers?: number } = {},
): Promise<ZookeeperEnsemble> {
  return await onFreePorts(4 * count, async (ports) => {
    const members = Array.from({ length: count }, (_, index): Member => {
      const [port = 0, tlsPort = 0, leaderPort = 0, electionPort = 0] = ports.slice(4 * index);
      return { id: index + 1, port, tlsPort, leaderPort, electionPort };
    });
    const links = new Map<string, PeerLink>();
    for (const from of members) {
      for (const to of members) {
        if (from === to) continue;
        const following = await startProxy({ targetPort: to.leaderPort });
        const electing = await startProxy({ targetPort: to.electionPort });
        links.set(linkName(from, to), { following, electing });
      }
    }
    for (const from of members) {
      for (const to of members) {
        const back = links.get(linkName(to, from));
        if (back) announce(links.get(linkName(from, to))?.electing, from, back.electing);
      }
    }
    const servers = members.map((member) => {
      const peers = members.map((peer) => {
        const link = links.get(linkName(member, peer));
        const leaderPort = link?.following.port ?? peer.leaderPort;
        const electionPort = link?.electing.port ?? peer.electionPort;
        const role = peer.id > count - observers ? ":observer" : "";
        return `server.${peer.id}=127.0.0.1:${leaderPort}:${electionPort}${role}`;
      });
      return new ZookeeperServer(member, peers, options);
    });
    try {
      return new ZookeeperEnsemble(
        await startAll(servers.map((server) => startOrClose(server))),
        links,
      );
    } catch (error) {
      await closeAll(proxiesOf(links));
      throw error;
    }
  });
}

/**
 * A server tells its election port when it connects to another one, which may connect back to that
 * port. This makes it tell the port of the proxy back to it. All ports have five digits.
 */
function announce(link: FaultProxy | undefined, from: Member, back: FaultProxy): void {
  link?.onRequest(({ bytes }) => {
    const at = bytes.indexOf(`127.0.0.1:${from.electionPort}`);
    if (at >= 0) bytes.write(`127.0.0.1:${back.port}`, at);
    return undefined;
  });
}

function proxiesOf(links: ReadonlyMap<string, PeerLink>): readonly FaultProxy[] {
  return [...links.values()].flatMap(({ following, electing }) => [following, electing]);
}

function linkName(from: { readonly id: number }, to: { readonly id: number }): string {
  return `${from.id} to ${to.id}`;
}
