/**
 * A simulated ZooKeeper of three servers: znodes with transactions, sessions that run out, watches,
 * containers that are removed when they are empty. One server leads. Leaders are killed or cut off;
 * a leader that was deposed, and a follower that is cut off, go on answering for a while.
 */
import type { Address } from "../../src/stores/store-url.js";
import type { Chance } from "../chance.js";
import type { Network } from "../connection.js";
import type { History } from "../history.js";
import { type EntryReader, QueueAccount } from "../sequencer/queue-account.js";
import type { StoreSide } from "../store-server.js";
import { delayOf } from "../weather.js";
import type { World } from "../world.js";
import { Writes } from "./writes.js";
import { parentOf, type Transaction, type Znode } from "./znode-tree.js";
import type { Write } from "./zookeeper-protocol.js";
import { TICK_MS, type WriteResult, ZookeeperServer } from "./zookeeper-server.js";

interface ServerSession {
  readonly timeoutMs: number;
  /** World time of the tick at which it ends. */
  endsMs: number;
  /** The server that its client is connected to, as the leader knows. */
  server: ZookeeperServer;
}

/** Writes that a server got from its client, and could not pass on to the leader. */
interface HeldBack {
  readonly session: bigint;
  readonly writes: readonly Write[];
  readonly from: ZookeeperServer;
}

/** A program with connections to servers. */
export interface ServerClient {
  /** Whether it has a connection to that server. */
  uses(server: ZookeeperServer): boolean;
  /** No message of it gets through for a while. */
  cut(forMs: number): void;
}

export interface ServersOptions {
  /** How fast the clocks of the servers run. */
  readonly rate: number;
  readonly longestTtlMs: number;
  /** How far a follower may be behind. */
  readonly mostLagMs: number;
}

const COUNT = 3;
const SESSION_EXPIRED = -112;
const SESSION_MOVED = -118;
const WALL_MS = 1_700_000_000_000;
/** A container is removed some time after its last child has left. */
const EMPTY_MS = [20, 5_000] as const;
/** The counters of some seeds soon come to their end. */
const FIRST_COUNTERS = [0, 0, 2 ** 31 - 3];
/** How long the leader takes to write a transaction. */
const WRITE_MS = [0.1, 50] as const;
const ENTRY =
  /^\/(?:holdfast:(once)\/)?([^/]+)\/_c_[-0-9a-f]+(?:\.([xs])\.(\d+)\.(\d+|-))?-lock--?\d+$/;

const entryReader: EntryReader<Znode> = {
  read: (path, { czxid, session }) => {
    const found = ENTRY.exec(path);
    if (!found) return null;
    const [, once, name = "", letter = "x", weight = "1", limit = "-"] = found;
    return {
      name: once ? `once ${name}` : name,
      token: czxid,
      session: session.toString(16),
      isExclusive: letter === "x",
      weight: Number(weight),
      limit: limit === "-" ? Number.POSITIVE_INFINITY : Number(limit),
    };
  },
  textOf: ({ data }) => data,
};

export class ZookeeperServers implements StoreSide {
  readonly setBackMs = 0;
  readonly world: World;
  readonly chance: Chance;
  /** All transactions that a quorum has committed. */
  readonly log: Transaction[] = [];
  readonly #network: Network;
  readonly #options: ServersOptions;
  readonly #account: QueueAccount<Znode>;
  readonly #servers: readonly ZookeeperServer[];
  readonly #sessions = new Map<bigint, ServerSession>();
  readonly #clients: ServerClient[] = [];
  readonly #firstCounter: number;
  /** The counters past their end, which the leader forgets when it has written the transaction. */
  readonly #unwritten = new Map<string, number>();
  #holdsBackUntilMs = 0;
  #heldBack: HeldBack | null = null;
  /** The server that is as far behind as can be with the transaction that is committed now. */
  #behind: ZookeeperServer | null = null;
  #leader: ZookeeperServer;
  #epoch = 1n;
  #lastZxid = 0n;
  #lastSession = 0n;

  constructor(network: Network, history: History, options: ServersOptions) {
    this.world = network.world;
    this.chance = network.chance;
    this.#network = network;
    this.#options = options;
    this.#account = new QueueAccount(history, entryReader);
    this.#firstCounter = this.chance.pick(FIRST_COUNTERS);
    this.#servers = Array.from({ length: COUNT }, () => new ZookeeperServer(this));
    this.#leader = this.chance.pick(this.#servers);
  }

  get addresses(): Address[] {
    return this.#servers.map((_, index) => ({ host: "zookeeper", port: index }));
  }

  add(client: ServerClient): void {
    this.#clients.push(client);
  }

  at({ port }: Address): ZookeeperServer {
    return this.#servers[port] as ZookeeperServer;
  }

  get leader(): ZookeeperServer {
    return this.#leader;
  }

  /** Rises with every leader. */
  get epoch(): bigint {
    return this.#epoch;
  }

  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  /** Marks and empty containers may stay. */
  get size(): number {
    return this.#leader.tree.ephemerals().length + this.#sessions.size;
  }

  census(): { holders: number; waiters: number } {
    return this.#account.census();
  }

  /** Sessions run by a monotonic clock, which has no steps. */
  step(): void {}

  stall(forMs: number): void {
    this.chance.pick(this.#servers).busyUntilMs = this.world.nowMs + forMs;
  }

  /** Transactions are saved as they are committed. */
  save(): void {}

  restart(downMs: number): void {
    if (this.#servers.some(({ state }) => state !== "serving")) return;
    const followers = this.#servers.filter((server) => server !== this.#leader);
    const follower = this.chance.pick(followers);
    const fault = this.chance.weigh({ elect: 2, depose: 3, kill: 2, cut: 2 });
    if (fault === "kill") this.#bounce(follower, downMs);
    else if (fault === "cut") {
      follower.cut();
      this.#later(downMs, () => this.#bounce(follower, this.chance.spread(1, 100)));
    } else this.#elect(follower, followers, downMs, fault === "depose");
  }

  /** The next proof or the next new entry of a client is hit by the fault that it must survive. */
  ambush(): void {
    if (this.#servers.some(({ state }) => state !== "serving")) return;
    const followers = this.#servers.filter((server) => server !== this.#leader);
    const latestMs = this.world.nowMs + this.#options.longestTtlMs / 2;
    if (this.chance.isLucky(0.3)) this.#holdsBackUntilMs = latestMs;
    else this.#loseRackOf(this.chance.pick(followers), latestMs);
  }

  /**
   * A follower that gets the request for a new entry is cut off from its leader. True if the writes
   * are such a request: they are done, if at all, when their client resumes its session elsewhere.
   */
  holdsBack(session: bigint, writes: readonly Write[], from: ZookeeperServer): boolean {
    if (this.world.nowMs > this.#holdsBackUntilMs) return false;
    if (from === this.#leader || from.state !== "serving") return false;
    if (!writes.some((write) => write.type === "create" && write.isEphemeral)) return false;
    this.#holdsBackUntilMs = 0;
    this.#heldBack = { session, writes, from };
    from.cut();
    this.#later(this.#options.longestTtlMs, () => this.#bounce(from, this.chance.spread(1, 100)));
    return true;
  }

  /** How long a message between two servers takes. */
  peerDelayMs(): number {
    return delayOf(this.#network.weather(), this.chance) / 4;
  }

  write(session: bigint, writes: readonly Write[], from: ZookeeperServer): WriteResult {
    const known = this.#sessions.get(session);
    const zxid = this.#nextZxid();
    const { world, chance } = this;
    const counters = { first: this.#firstCounter, unwritten: this.#unwritten };
    const tried = new Writes(this.#leader.tree, zxid, WALL_MS + world.nowMs, counters);
    const error = known?.server === from ? 0 : known ? SESSION_MOVED : SESSION_EXPIRED;
    const outcome = error === 0 ? tried.do(writes, session) : error;
    const isDone = Array.isArray(outcome);
    this.#commit(isDone ? tried.transaction() : { zxid, changes: [], endedSession: null });
    for (const [path, counter] of isDone ? tried.counters : []) this.#count(path, counter);
    for (const write of isDone ? writes : []) {
      if (write.type !== "delete") continue;
      this.#later(chance.spread(...EMPTY_MS), () => this.#removeEmpty(parentOf(write.path)));
    }
    return { zxid, outcome };
  }

  /** A counter that is not past its end is that of the znode itself. */
  #count(path: string, counter: number): void {
    if (counter >= 0) return;
    this.#unwritten.set(path, counter);
    this.#later(this.chance.spread(...WRITE_MS), () => {
      if (this.#unwritten.get(path) === counter) this.#unwritten.delete(path);
    });
  }

  openSession(timeoutMs: number, server: ZookeeperServer): bigint {
    this.#lastSession += 1n;
    const session = { timeoutMs, endsMs: 0, server };
    this.#sessions.set(this.#lastSession, session);
    this.#commit({ zxid: this.#nextZxid(), changes: [], endedSession: null });
    this.touch(this.#lastSession);
    this.#endLater(this.#lastSession, session);
    return this.#lastSession;
  }

  /** False where the session is over. */
  resume(id: bigint, server: ZookeeperServer): boolean {
    const session = this.#sessions.get(id);
    if (!session) return false;
    this.#doHeldBack(id, server);
    session.server = server;
    this.touch(id);
    return true;
  }

  /** The request arrives just before the resume, of which the new server learns before. */
  #doHeldBack(id: bigint, server: ZookeeperServer): void {
    const held = this.#heldBack;
    if (held?.session !== id || held.from === server) return;
    this.#heldBack = null;
    this.#behind = server;
    this.write(id, held.writes, held.from);
    this.#behind = null;
  }

  touch(id: bigint): void {
    const session = this.#sessions.get(id);
    if (!session) return;
    const dueMs = this.world.nowMs + session.timeoutMs / this.#options.rate;
    session.endsMs = Math.max(session.endsMs, (Math.floor(dueMs / TICK_MS) + 1) * TICK_MS);
    this.#account.extended(this.world.nowMs, id.toString(16));
  }

  endSession(id: bigint): void {
    this.#sessions.delete(id);
    const zxid = this.#nextZxid();
    const writes = new Writes(this.#leader.tree, zxid, this.world.nowMs);
    const paths = this.#leader.tree.ephemerals(id);
    for (const path of paths) writes.delete(path);
    this.#commit(writes.transaction(id));
    for (const path of paths) {
      const delayMs = this.chance.spread(...EMPTY_MS);
      this.#later(delayMs, () => this.#removeEmpty(parentOf(path)));
    }
  }

  #endLater(id: bigint, session: ServerSession): void {
    const atMs = Math.max(session.endsMs, this.#leader.busyUntilMs);
    this.world.schedule(atMs, null, () => {
      if (this.#sessions.get(id) !== session) return;
      const { nowMs } = this.world;
      const isDue = session.endsMs <= nowMs && this.#leader.busyUntilMs <= nowMs;
      if (!isDue) this.#endLater(id, session);
      else if (this.#leader.state === "serving") {
        this.#account.lapsed(nowMs, id.toString(16));
        this.endSession(id);
      } else this.#later(TICK_MS, () => this.#endLater(id, session));
    });
  }

  #removeEmpty(path: string): void {
    const { tree, state } = this.#leader;
    if (state !== "serving" || !tree.get(path)?.isContainer) return;
    if (tree.children(path).length > 0) return;
    const writes = new Writes(tree, this.#nextZxid(), this.world.nowMs);
    writes.delete(path);
    this.#unwritten.delete(path);
    this.#commit(writes.transaction());
    this.#later(this.chance.spread(...EMPTY_MS), () => this.#removeEmpty(parentOf(path)));
  }

  #nextZxid(): bigint {
    this.#lastZxid += 1n;
    return this.#lastZxid;
  }

  #commit(transaction: Transaction): void {
    const { nowMs } = this.world;
    this.log.push(transaction);
    this.#leader.catchUp();
    for (const { path, znode } of transaction.changes) this.#account.changed(nowMs, path, znode);
    this.#account.settle(nowMs);
    for (const server of this.#servers) {
      if (server === this.#leader) continue;
      const lagMs = server === this.#behind ? this.#options.mostLagMs : this.#lagMs();
      server.catchUpLater(transaction.zxid, lagMs);
    }
  }

  #lagMs(): number {
    const { mostLagMs } = this.#options;
    const isBehind = mostLagMs > 0 && this.chance.isLucky(0.1);
    return this.peerDelayMs() + (isBehind ? this.chance.spread(1, mostLagMs) : 0);
  }

  /** The followers elect a leader, with all time-outs begun anew; the old one may not notice. */
  #elect(
    next: ZookeeperServer,
    followers: readonly ZookeeperServer[],
    downMs: number,
    isCut: boolean,
  ): void {
    const old = this.#leader;
    if (isCut) old.depose(this.#sessions.keys());
    else old.goDown();
    for (const follower of followers) follower.cut();
    this.#later(this.chance.between(0, downMs), () => {
      for (const follower of followers) follower.goDown();
    });
    this.#later(downMs, () => {
      this.#leader = next;
      this.#epoch += 1n;
      this.#unwritten.clear();
      this.#lastZxid = this.#epoch << 32n;
      for (const follower of followers) follower.join();
      for (const id of this.#sessions.keys()) this.touch(id);
    });
    const oldMs = downMs + this.chance.between(1, isCut ? this.#options.longestTtlMs : downMs);
    this.#later(oldMs, () => this.#bounce(old, this.chance.spread(1, 100)));
  }

  /**
   * Right after the next proof, a rack loses its power and its network: the follower, which has not
   * told the leader of its sessions yet, is killed, and its clients reach no other server.
   */
  #loseRackOf(follower: ZookeeperServer, latestMs: number): void {
    const { longestTtlMs } = this.#options;
    const strike = (): void => {
      const isWhole = this.#servers.every(({ state }) => state === "serving");
      if (!isWhole || follower === this.#leader || this.world.nowMs > latestMs) return;
      const cutMs = longestTtlMs * this.chance.between(0.7, 1.3);
      for (const client of this.#clients) if (client.uses(follower)) client.cut(cutMs);
      this.#bounce(follower, this.chance.spread(1, longestTtlMs));
    };
    follower.afterNextProof(() => this.#later(this.chance.between(2, TICK_MS / 4), strike));
  }

  /** A server stops serving, and joins its leader after a while. */
  #bounce(server: ZookeeperServer, downMs: number): void {
    server.goDown();
    this.#later(downMs, () => server.join());
  }

  #later(delayMs: number, task: () => void): void {
    this.world.schedule(this.world.nowMs + delayMs, null, task);
  }
}
