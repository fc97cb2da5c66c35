/**
 * A simulated etcd: keys with revisions, transactions, leases that run out, and watches. It also
 * has the faults of a cluster: leaders change, a deposed leader answers keep-alives for a while,
 * reads of other members lag behind, and the history is compacted.
 */
import type {
  Compare,
  DeleteReply,
  DeleteRequest,
  GrantRequest,
  KeyValue,
  LeaseReply,
  PutRequest,
  RangeReply,
  RangeRequest,
  RequestOp,
  ResponseOp,
  TxnReply,
  TxnRequest,
} from "../../src/stores/etcd/wire/messages.js";
import type { Chance } from "../chance.js";
import type { History } from "../history.js";
import type { StoreSide } from "../store-server.js";
import type { World } from "../world.js";
import { etcdEntryReader } from "./etcd-entry-reader.js";
import { eventsOf, KeyHistory } from "./key-history.js";
import { QueueAccount } from "./queue-account.js";
import { WatchHub } from "./watch-hub.js";

interface ServerLease {
  readonly ttlMs: number;
  /** World time at which it runs out. */
  untilMs: number;
  readonly keys: Set<string>;
}

/** How often etcd looks for expired leases, and for watches that begin in the past. */
export const EXPIRY_EVERY_MS = 500;
export const CATCH_UP_MS = 100;
/** How many revisions another member may be behind. */
const MAX_LAG = 4;
const NO_LEASE = 0n;

export class EtcdServer implements StoreSide {
  readonly setBackMs = 0;
  readonly watches: WatchHub;
  readonly #world: World;
  readonly #chance: Chance;
  /** How fast its clock runs. */
  readonly #rate: number;
  readonly #account: QueueAccount<KeyValue>;
  readonly #keys = new KeyHistory();
  readonly #leases = new Map<bigint, ServerLease>();
  readonly #onRestart = new Set<() => void>();
  #deposed = { term: 0n, revision: 0n, untilMs: 0, leases: new Map<bigint, number>() };
  #downUntilMs = 0;
  #busyUntilMs = 0;

  constructor(world: World, rate: number, history: History, chance: Chance) {
    this.#world = world;
    this.#rate = rate;
    this.#chance = chance;
    this.#account = new QueueAccount(history, etcdEntryReader);
    const catchUp = (task: () => void): void => {
      world.schedule(world.nowMs + chance.between(0, CATCH_UP_MS), null, task);
    };
    this.watches = new WatchHub(this.#keys, catchUp);
  }

  get size(): number {
    return this.#keys.size + this.#leases.size;
  }

  get isDown(): boolean {
    return this.#world.nowMs < this.#downUntilMs;
  }

  /** World time before which it answers no request. */
  get busyUntilMs(): number {
    return this.#busyUntilMs;
  }

  onRestart(listener: () => void): void {
    this.#onRestart.add(listener);
  }

  census(): { holders: number; waiters: number } {
    return this.#account.census();
  }

  /** Its leases run by a monotonic clock, which has no steps. */
  step(): void {}

  stall(forMs: number): void {
    this.#busyUntilMs = this.#world.nowMs + forMs;
  }

  /** Elects another leader. Each lease gets its full ttl; the old leader notices only later. */
  restart(downMs: number): void {
    const { nowMs } = this.#world;
    const longestMs = Math.max(0, ...[...this.#leases.values()].map(({ ttlMs }) => ttlMs));
    this.#deposed = {
      term: this.#keys.term,
      revision: this.#keys.revision,
      untilMs: nowMs + downMs + this.#chance.between(0, 2 * longestMs),
      leases: new Map([...this.#leases].map(([id, { ttlMs }]) => [id, ttlMs])),
    };
    this.#downUntilMs = nowMs + downMs;
    this.#keys.term += 1n;
    for (const id of this.#leases.keys()) this.#extend(id, this.#downUntilMs);
    this.watches.closeAll();
    for (const listener of [...this.#onRestart]) listener();
  }

  /** The history is compacted. */
  save(): void {
    this.#keys.compact(this.#chance.whole(0, 3));
  }

  txn(request: TxnRequest): TxnReply {
    this.#demandLeases(request);
    const { succeeded, responses } = this.#run(request, new Map());
    if (succeeded && isRevocation(request)) {
      for (const { key } of this.#keys.pending) this.#account.revoked(this.#world.nowMs, key);
    }
    this.#commit();
    return { header: this.#keys.header(), succeeded, responses };
  }

  range(request: RangeRequest): RangeReply {
    if (request.serializable) return this.#keys.readPast(request, this.#chance.whole(0, MAX_LAG));
    return { header: this.#keys.header(), kvs: this.#keys.read(request) };
  }

  deleteRange({ key }: DeleteRequest): DeleteReply {
    const deleted = this.#delete(key.toString());
    this.#commit();
    return { header: this.#keys.header(), deleted };
  }

  grantLease({ id, ttl }: GrantRequest): unknown {
    if (this.#leases.has(id)) throw new Error("etcdserver: lease already exists");
    this.#leases.set(id, { ttlMs: Number(ttl) * 1000, untilMs: 0, keys: new Set() });
    this.#extend(id, this.#world.nowMs);
    return {};
  }

  revokeLease(id: bigint): unknown {
    const lease = this.#leases.get(id);
    if (!lease) throw new Error("etcdserver: requested lease not found");
    this.#end(id, lease);
    return {};
  }

  timeToLive(id: bigint): LeaseReply {
    const lease = this.#leases.get(id);
    const seconds = lease ? Math.ceil((lease.untilMs - this.#world.nowMs) / 1000) : -1;
    return { header: this.#keys.header(), ttl: BigInt(seconds) };
  }

  keepAlive(id: bigint): LeaseReply {
    const { term, revision, untilMs, leases } = this.#deposed;
    if (this.#world.nowMs < untilMs && this.#chance.isLucky(0.5)) {
      const ttlMs = leases.get(id) ?? 0;
      return { header: { revision, raftTerm: term }, ttl: BigInt(ttlMs / 1000) };
    }
    const lease = this.#leases.get(id);
    if (lease) this.#extend(id, this.#world.nowMs);
    return { header: this.#keys.header(), ttl: BigInt((lease?.ttlMs ?? 0) / 1000) };
  }

  #extend(id: bigint, fromMs: number): void {
    const lease = this.#leases.get(id) as ServerLease;
    lease.untilMs = fromMs + lease.ttlMs / this.#rate;
    this.#account.extended(this.#world.nowMs, lease.keys);
    this.#expireLater(id, lease);
  }

  #expireLater(id: bigint, lease: ServerLease): void {
    const dueMs = lease.untilMs + this.#chance.between(0, EXPIRY_EVERY_MS);
    this.#world.schedule(Math.max(dueMs, this.#busyUntilMs), null, () => {
      if (this.#leases.get(id) !== lease || lease.untilMs > this.#world.nowMs) return;
      if (this.#busyUntilMs > this.#world.nowMs) this.#expireLater(id, lease);
      else this.#lapse(id, lease);
    });
  }

  #lapse(id: bigint, lease: ServerLease): void {
    this.#account.lapsed(this.#world.nowMs, lease.keys);
    this.#end(id, lease);
  }

  #end(id: bigint, { keys }: ServerLease): void {
    this.#leases.delete(id);
    for (const key of [...keys]) this.#delete(key);
    this.#commit();
  }

  #demandLeases({ success = [], failure = [] }: TxnRequest): void {
    for (const operation of [...success, ...failure]) {
      if ("requestTxn" in operation) this.#demandLeases(operation.requestTxn);
      if (!("requestPut" in operation)) continue;
      const { lease } = operation.requestPut;
      if (lease !== undefined && !this.#leases.has(lease)) {
        throw new Error("etcdserver: requested lease not found");
      }
    }
  }

  /** Decides all conditions, also those of transactions inside, before the first operation. */
  #run(request: TxnRequest, known: Map<TxnRequest, boolean>): Omit<TxnReply, "header"> {
    this.#decide(request, known);
    const succeeded = known.get(request) === true;
    const operations = (succeeded ? request.success : request.failure) ?? [];
    return { succeeded, responses: operations.map((one) => this.#operate(one, known)) };
  }

  #decide(request: TxnRequest, known: Map<TxnRequest, boolean>): void {
    if (known.has(request)) return;
    const isMet = (request.compare ?? []).every((compare) => this.#isMet(compare));
    known.set(request, isMet);
    for (const operation of (isMet ? request.success : request.failure) ?? []) {
      if ("requestTxn" in operation) this.#decide(operation.requestTxn, known);
    }
  }

  #isMet(compare: Compare): boolean {
    const found = this.#keys.read({ key: compare.key, ...rangeEndOf(compare) });
    if (compare.target === "Create") {
      if (found.length === 0) return compare.createRevision === 0n;
      return found.every(({ createRevision }) => createRevision === compare.createRevision);
    }
    if (found.length === 0) return compare.modRevision === 0n;
    return found.every(({ modRevision }) => modRevision === compare.modRevision);
  }

  #operate(operation: RequestOp, known: Map<TxnRequest, boolean>): ResponseOp {
    if ("requestRange" in operation) {
      const kvs = this.#keys.read(operation.requestRange);
      return { responseRange: { header: this.#keys.header(), kvs } };
    }
    if ("requestDeleteRange" in operation) {
      const deleted = this.#delete(operation.requestDeleteRange.key.toString());
      return { responseDeleteRange: { header: this.#keys.header(), deleted } };
    }
    if ("requestTxn" in operation) {
      const inner = this.#run(operation.requestTxn, known);
      return { responseTxn: { header: this.#keys.header(), ...inner } };
    }
    this.#put(operation.requestPut);
    return {};
  }

  #put(request: PutRequest): void {
    const key = request.key.toString();
    const before = this.#keys.get(key);
    const lease = request.ignoreLease ? (before?.lease ?? NO_LEASE) : (request.lease ?? NO_LEASE);
    const value = request.ignoreValue ? before?.value : request.value;
    this.#leases.get(before?.lease ?? NO_LEASE)?.keys.delete(key);
    this.#leases.get(lease)?.keys.add(key);
    this.#keys.put(request.key, value ?? Buffer.alloc(0), lease);
  }

  #delete(key: string): bigint {
    const before = this.#keys.delete(key);
    if (!before) return 0n;
    this.#leases.get(before.lease)?.keys.delete(key);
    return 1n;
  }

  /** Gives all changes of a call one revision, and tells the watches. */
  #commit(): void {
    const changes = this.#keys.commit();
    if (changes.length === 0) return;
    const { nowMs } = this.#world;
    for (const { key, kv } of changes) this.#account.changed(nowMs, key, kv);
    this.#account.settle(nowMs);
    this.watches.publish(eventsOf(changes, this.#keys.revision));
  }
}

/** A revoke deletes with a condition; the owner of an entry has none, or leaves a mark. */
function isRevocation({ compare = [], success = [] }: TxnRequest): boolean {
  const [operation] = success;
  return compare.length > 0 && success.length === 1 && !!operation && isDeletion(operation);
}

function isDeletion(operation: RequestOp): boolean {
  return "requestDeleteRange" in operation;
}

function rangeEndOf({ rangeEnd }: Compare): Pick<RangeRequest, "rangeEnd"> {
  return rangeEnd ? { rangeEnd } : {};
}
