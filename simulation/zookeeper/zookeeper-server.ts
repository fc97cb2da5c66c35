/**
 * One server of a simulated ZooKeeper. It answers reads from its own znodes, which may be behind
 * those of the leader, and asks the leader for everything else.
 */
import { ClientConnection } from "./client-connection.js";
import type { Listening, ServerEnd, SimulatedSocket } from "./simulated-socket.js";
import type { Refusal } from "./writes.js";
import { type Transaction, type Znode, ZnodeTree } from "./znode-tree.js";
import type { Write, Written } from "./zookeeper-protocol.js";
import type { ZookeeperServers } from "./zookeeper-servers.js";

export const TICK_MS = 250;

/** The reply of the leader to a write; a number is the error of the whole request. */
export interface WriteResult {
  readonly zxid: bigint;
  readonly outcome: readonly Written[] | Refusal | number;
}

/**
 * serving: with the leader, or as the leader. cut: the leader does not hear this server, which has
 * not noticed yet. deposed: it was the leader, there is another one, and it has not noticed yet.
 */
export type ServerState = "serving" | "cut" | "deposed" | "down";

export class ZookeeperServer implements Listening {
  readonly tree: ZnodeTree = new ZnodeTree();
  busyUntilMs = 0;
  readonly #servers: ZookeeperServers;
  readonly #connections = new Set<ClientConnection>();
  /** The sessions that the next ping of the leader is answered with. */
  #touched = new Set<bigint>();
  #onProof: () => void = () => {};
  #state: ServerState = "serving";
  /** The sessions that a deposed leader knows. */
  #known: ReadonlySet<bigint> = new Set();
  #applied = 0;
  #appliedMs = 0;
  #toLeaderMs = 0;
  #fromLeaderMs = 0;

  constructor(servers: ZookeeperServers) {
    this.#servers = servers;
  }

  get state(): ServerState {
    return this.#state;
  }

  get isDown(): boolean {
    return this.#state === "down";
  }

  get mode(): string {
    const leads = this.#servers.leader === this || this.#state === "deposed";
    return leads ? "leader" : "follower";
  }

  accept(socket: SimulatedSocket): ServerEnd {
    const connection = new ClientConnection(this, socket);
    this.#connections.add(connection);
    return connection;
  }

  forget(connection: ClientConnection): void {
    this.#connections.delete(connection);
  }

  cut(): void {
    this.#state = "cut";
  }

  depose(known: Iterable<bigint>): void {
    this.#state = "deposed";
    this.#known = new Set(known);
  }

  goDown(): void {
    this.#state = "down";
    this.#touched.clear();
    for (const connection of [...this.#connections]) connection.close();
  }

  /** Back with a leader, whose transactions it takes over before it serves a client. */
  join(): void {
    this.#state = "serving";
    this.catchUp();
  }

  /** Applies all transactions up to `zxid`, or all that there are. */
  catchUp(zxid?: bigint): void {
    const { log } = this.#servers;
    for (let next = log[this.#applied]; next; next = log[this.#applied]) {
      if (zxid !== undefined && next.zxid > zxid) return;
      this.#applied += 1;
      this.#apply(next);
    }
  }

  /** The leader tells of a transaction, which arrives behind those before it. */
  catchUpLater(zxid: bigint, lagMs: number): void {
    const { world, epoch } = this.#servers;
    this.#appliedMs = Math.max(this.#appliedMs, world.nowMs + lagMs);
    world.schedule(this.#appliedMs, null, () => {
      if (this.#isWith(epoch)) this.catchUp(zxid);
    });
  }

  supersedeOthers(session: bigint, current: ClientConnection): void {
    for (const connection of [...this.#connections]) {
      if (connection.session === session && connection !== current) connection.supersede();
    }
  }

  /** A client was heard. Followers tell the leader with their next answer to its ping. */
  touch(session: bigint): void {
    const { world, chance, leader, epoch } = this.#servers;
    if (this.#state === "serving" && leader === this) return this.#servers.touch(session);
    this.#touched.add(session);
    if (this.#touched.size > 1) return;
    world.schedule(world.nowMs + chance.between(0, TICK_MS / 2), null, () => {
      const touched = this.#touched;
      this.#touched = new Set();
      if (!this.#isWith(epoch)) return;
      this.#ask(
        () => {
          for (const one of touched) this.#servers.touch(one);
        },
        () => {},
      );
    });
  }

  /** Opens a session (0), or resumes one. The listener gets null where the session is over. */
  openSession(session: bigint, timeoutMs: number, then: (opened: bigint | null) => void): void {
    if (this.#state === "deposed") {
      if (session !== 0n) then(this.#known.has(session) ? session : null);
      return;
    }
    if (session === 0n) {
      this.#askForWrite(() => this.#servers.openSession(timeoutMs, this), then);
    } else {
      this.#ask(() => (this.#servers.resume(session, this) ? session : null), then);
    }
  }

  write(session: bigint, writes: readonly Write[], then: (result: WriteResult) => void): void {
    if (this.#servers.holdsBack(session, writes, this)) return;
    this.#askForWrite(
      () => this.#servers.write(session, writes, this),
      (result) => {
        then(result);
        if (!writes.every(({ type, path }) => type === "check" && path !== "/")) return;
        const onProof = this.#onProof;
        this.#onProof = () => {};
        onProof();
      },
    );
  }

  /** Calls back when the next proof of a session is answered: it checks entries, no more. */
  afterNextProof(onProof: () => void): void {
    this.#onProof = onProof;
  }

  endSession(session: bigint, then: () => void): void {
    this.#askForWrite(() => this.#servers.endSession(session), then);
  }

  sync(then: () => void): void {
    // A leader that was deposed believes that it is up to date.
    if (this.#state === "deposed") return then();
    this.#askForWrite(() => {}, then);
  }

  /** Goes on once this server has applied all that the leader had when it answered. */
  #askForWrite<T>(work: () => T, then: (result: T) => void): void {
    this.#ask(
      () => ({ result: work(), zxid: this.#servers.lastZxid }),
      ({ result, zxid }) => {
        this.catchUp(zxid);
        then(result);
      },
    );
  }

  /** Asks the leader, in one stream; there is no answer where the leader does not hear of it. */
  #ask<T>(work: () => T, then: (result: T) => void): void {
    const { world, epoch, leader } = this.#servers;
    const delayMs = (): number => (leader === this ? 0 : this.#servers.peerDelayMs());
    this.#toLeaderMs = Math.max(this.#toLeaderMs, world.nowMs + delayMs());
    const arrive = (): void => {
      if (!this.#isWith(epoch)) return;
      if (leader.busyUntilMs > world.nowMs) {
        world.schedule(leader.busyUntilMs, null, arrive);
        return;
      }
      const result = work();
      this.#fromLeaderMs = Math.max(this.#fromLeaderMs, world.nowMs + delayMs());
      world.schedule(this.#fromLeaderMs, null, () => {
        if (this.#isWith(epoch)) then(result);
      });
    };
    world.schedule(this.#toLeaderMs, null, arrive);
  }

  #isWith(epoch: bigint): boolean {
    return this.#state === "serving" && this.#servers.epoch === epoch;
  }

  #apply(transaction: Transaction): void {
    const before = new Map<string, Znode>();
    for (const { path } of transaction.changes) {
      const znode = this.tree.get(path);
      if (znode) before.set(path, znode);
    }
    this.tree.apply(transaction);
    for (const connection of [...this.#connections]) connection.onApplied(transaction, before);
  }
}
