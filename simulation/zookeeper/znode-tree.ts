/** The znodes of one server of a simulated ZooKeeper, as of the last transaction it has applied. */
import type { Stat } from "../../src/stores/zookeeper/wire/jute.js";

export interface Znode {
  readonly data: Buffer;
  /** The session that the znode ends with; 0 where it ends with none. */
  readonly session: bigint;
  readonly isContainer: boolean;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly pzxid: bigint;
  readonly createdMs: number;
  readonly version: number;
  /** Counts the children that were made. It is only ever raised, so it stays at the last number. */
  readonly childCounter: number;
}

export interface Change {
  readonly path: string;
  /** Null: the znode was deleted. */
  readonly znode: Znode | null;
}

export interface Transaction {
  readonly zxid: bigint;
  readonly changes: readonly Change[];
  /** The session that ends with this transaction. */
  readonly endedSession: bigint | null;
}

const ROOT: Znode = {
  data: Buffer.alloc(0),
  session: 0n,
  isContainer: false,
  czxid: 0n,
  mzxid: 0n,
  pzxid: 0n,
  createdMs: 0,
  version: 0,
  childCounter: 0,
};

export class ZnodeTree {
  readonly #znodes = new Map<string, Znode>([["/", ROOT]]);
  #zxid = 0n;

  /** The last transaction that was applied. */
  get zxid(): bigint {
    return this.#zxid;
  }

  get(path: string): Znode | null {
    return this.#znodes.get(path) ?? null;
  }

  children(path: string): string[] {
    return [...this.#znodes.keys()].filter((one) => one !== "/" && parentOf(one) === path);
  }

  /** The znodes that end with a session; all of them where no session is given. */
  ephemerals(session?: bigint): string[] {
    const wanted = [...this.#znodes].filter(([, znode]) => {
      return session === undefined ? znode.session !== 0n : znode.session === session;
    });
    return wanted.map(([path]) => path);
  }

  apply({ zxid, changes }: Transaction): void {
    this.#zxid = zxid;
    for (const { path, znode } of changes) {
      if (znode) this.#znodes.set(path, znode);
      else this.#znodes.delete(path);
    }
  }
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

export function statOf(znode: Znode, childCount: number): Stat {
  const { czxid, mzxid, pzxid, createdMs, version, session, data } = znode;
  return {
    czxid,
    mzxid,
    createdMs,
    modifiedMs: createdMs,
    version,
    childVersion: 0,
    aclVersion: 0,
    ephemeralOwner: session,
    dataBytes: data.length,
    childCount,
    pzxid,
  };
}
