/** The writes of one request, tried on the znodes of the leader: all of them are done, or none. */
import { ANY_VERSION, Operation } from "../../src/stores/zookeeper/wire/requests.js";
import {
  type Change,
  parentOf,
  statOf,
  type Transaction,
  type Znode,
  type ZnodeTree,
} from "./znode-tree.js";
import type { Write, Written } from "./zookeeper-protocol.js";

export const NO_NODE = -101;
const BAD_VERSION = -103;
const NODE_EXISTS = -110;
const NOT_EMPTY = -111;
const NO_CHILDREN_FOR_EPHEMERALS = -108;

export interface Refusal {
  readonly at: number;
  readonly error: number;
}

/** The counters of children, as the leader has them. */
export interface ChildCounters {
  /** The counter of every new znode. */
  readonly first: number;
  /** The counters of znodes whose last child is still being written: these go on past the end. */
  readonly unwritten: ReadonlyMap<string, number>;
}

const NO_COUNTERS: ChildCounters = { first: 0, unwritten: new Map() };

export class Writes {
  /** The counters as this transaction leaves them, by the paths of the parents. */
  readonly counters: Map<string, number> = new Map();
  readonly #tree: ZnodeTree;
  readonly #zxid: bigint;
  readonly #nowMs: number;
  readonly #before: ChildCounters;
  readonly #changes = new Map<string, Znode | null>();

  constructor(tree: ZnodeTree, zxid: bigint, nowMs: number, counters: ChildCounters = NO_COUNTERS) {
    this.#tree = tree;
    this.#zxid = zxid;
    this.#nowMs = nowMs;
    this.#before = counters;
  }

  do(writes: readonly Write[], session: bigint): Written[] | Refusal {
    const replies: Written[] = [];
    for (const [at, write] of writes.entries()) {
      const result = this.#do(write, session);
      if (typeof result === "number") return { at, error: result };
      replies.push(result);
    }
    return replies;
  }

  delete(path: string): void {
    this.#changes.set(path, null);
  }

  transaction(endedSession: bigint | null = null): Transaction {
    const changes: Change[] = [...this.#changes].map(([path, znode]) => ({ path, znode }));
    return { zxid: this.#zxid, changes, endedSession };
  }

  /** The error of the server, where the write is not possible. */
  #do(write: Write, session: bigint): Written | number {
    if (write.type === "create") return this.#create(write, session);
    const znode = this.#get(write.path);
    if (!znode) return NO_NODE;
    switch (write.type) {
      case "check":
        return { operation: Operation.check, path: null, stat: null };
      case "set": {
        const { version } = znode;
        if (write.version !== ANY_VERSION && write.version !== version) return BAD_VERSION;
        const after = { ...znode, data: write.data, mzxid: this.#zxid, version: version + 1 };
        this.#changes.set(write.path, after);
        const stat = statOf(after, this.#childrenOf(write.path).length);
        return {
          operation: Operation.setData,
          path: null,
          stat: { ...stat, modifiedMs: this.#nowMs },
        };
      }
      case "delete":
        if (this.#childrenOf(write.path).length > 0) return NOT_EMPTY;
        this.delete(write.path);
        return { operation: Operation.delete, path: null, stat: null };
    }
  }

  #create(write: Extract<Write, { type: "create" }>, session: bigint): Written | number {
    const parentPath = parentOf(write.path);
    const parent = this.#get(parentPath);
    if (!parent) return NO_NODE;
    if (parent.session !== 0n) return NO_CHILDREN_FOR_EPHEMERALS;
    const { unwritten, first } = this.#before;
    const { childCounter } = parent;
    const counter = this.counters.get(parentPath) ?? unwritten.get(parentPath) ?? childCounter;
    const path = write.isSequential ? write.path + sequenceText(counter) : write.path;
    if (this.#get(path)) return NODE_EXISTS;
    const znode: Znode = {
      data: write.data,
      session: write.isEphemeral ? session : 0n,
      isContainer: write.isContainer,
      czxid: this.#zxid,
      mzxid: this.#zxid,
      pzxid: this.#zxid,
      createdMs: this.#nowMs,
      version: 0,
      childCounter: first,
    };
    const next = (counter + 1) | 0;
    this.counters.set(parentPath, next);
    // A server raises the counter, and the transaction of the last change with it, or neither.
    const raised = { childCounter: next, pzxid: this.#zxid };
    this.#changes.set(parentPath, next > childCounter ? { ...parent, ...raised } : parent);
    this.#changes.set(path, znode);
    return { operation: Operation.create2, path, stat: statOf(znode, 0) };
  }

  /** With the changes of this transaction. */
  #childrenOf(path: string): string[] {
    const changed = [...this.#changes.keys()].filter((one) => parentOf(one) === path);
    const all = new Set([...this.#tree.children(path), ...changed]);
    return [...all].filter((child) => this.#get(child));
  }

  #get(path: string): Znode | null {
    const changed = this.#changes.get(path);
    return changed === undefined ? this.#tree.get(path) : changed;
  }
}

/** As Java's `%010d`: the sign is one of the ten places. */
function sequenceText(sequence: number): string {
  const digits = String(Math.abs(sequence));
  return sequence < 0 ? `-${digits.padStart(9, "0")}` : digits.padStart(10, "0");
}
