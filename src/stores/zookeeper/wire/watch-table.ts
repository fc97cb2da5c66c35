/**
 * The one-shot watches of a session. They outlive a connection: a new connection of the same
 * session asks the server to restore them, and the server tells at once those that fired meanwhile.
 */
import { oneOf } from "../../../events/foreign-data.js";
import type { JuteReader } from "./jute.js";
import { Operation, type Request, type Timed } from "./requests.js";

/**
 * `data`: set on a znode that exists. `exists`: set on one that does not. `children`: on the list
 * of its children.
 */
export type WatchKind = "data" | "exists" | "children";

export interface WatchEvent {
  /** `lost`: the watch is over and changes may have been missed. */
  readonly type: "created" | "deleted" | "changed" | "children" | "lost";
  readonly path: string;
}

/** Called once for each watch that it was given to: a watch fires once. It must not throw. */
export type WatchListener = (event: WatchEvent) => void;

/** The kinds of watches that an event fires, by the number of the event. */
const FIRED = {
  1: { type: "created", kinds: ["data", "exists"] },
  2: { type: "deleted", kinds: ["data", "exists", "children"] },
  3: { type: "changed", kinds: ["data", "exists"] },
  4: { type: "children", kinds: ["children"] },
} as const;

/** A request to restore watches has to stay well below the size limit of a request. */
const MAX_PATH_BYTES = 128 * 1024;

export class WatchTable {
  readonly #listeners = {
    data: new Map<string, Set<WatchListener>>(),
    exists: new Map<string, Set<WatchListener>>(),
    children: new Map<string, Set<WatchListener>>(),
  };

  /** The number of watched paths. */
  get size(): number {
    const { data, exists, children } = this.#listeners;
    return data.size + exists.size + children.size;
  }

  add(kind: WatchKind, path: string, listener: WatchListener): void {
    const listeners = this.#listeners[kind].get(path);
    if (listeners) listeners.add(listener);
    else this.#listeners[kind].set(path, new Set([listener]));
  }

  /** The listener is not called any more. The server keeps its side until the watch fires. */
  remove(path: string, listener: WatchListener): void {
    for (const paths of Object.values(this.#listeners)) {
      const listeners = paths.get(path);
      if (listeners?.delete(listener) && listeners.size === 0) paths.delete(path);
    }
  }

  /** Fires the watches that the event of a server is for. */
  fire(reader: JuteReader): void {
    const number = oneOf([1, 2, 3, 4], reader.int());
    // The state of the session, which the connection shows by itself.
    reader.int();
    const path = reader.path();
    const { type, kinds } = FIRED[number];
    for (const listener of this.#take(kinds, path)) listener({ type, path });
  }

  /** Tells every listener that its watch is over. */
  loseAll(): void {
    for (const paths of Object.values(this.#listeners)) {
      const all = [...paths];
      paths.clear();
      for (const [path, listeners] of all) {
        for (const listener of listeners) listener({ type: "lost", path });
      }
    }
  }

  /**
   * The requests that restore all watches. The server compares each with `sinceZxid`, the last
   * transaction that this session has seen, and fires at once what changed after it.
   */
  restoration(sinceZxid: bigint): Request<Timed>[] {
    const requests: Request<Timed>[] = [];
    let paths: Record<WatchKind, string[]> = { data: [], exists: [], children: [] };
    let bytes = 0;
    const finish = (): void => {
      if (bytes > 0) requests.push(setWatches(sinceZxid, paths));
      paths = { data: [], exists: [], children: [] };
      bytes = 0;
    };
    for (const kind of ["data", "exists", "children"] as const) {
      for (const path of this.#listeners[kind].keys()) {
        paths[kind].push(path);
        bytes += Buffer.byteLength(path);
        if (bytes >= MAX_PATH_BYTES) finish();
      }
    }
    finish();
    return requests;
  }

  /** Removes the listeners first: one of them may set its watch again. */
  #take(kinds: readonly WatchKind[], path: string): ReadonlySet<WatchListener> {
    const taken = kinds.flatMap((kind) => [...(this.#listeners[kind].get(path) ?? [])]);
    for (const kind of kinds) this.#listeners[kind].delete(path);
    return new Set(taken);
  }
}

function setWatches(
  sinceZxid: bigint,
  paths: Readonly<Record<WatchKind, readonly string[]>>,
): Request<Timed> {
  return {
    operation: Operation.setWatches,
    path: "",
    write: (writer) => {
      writer.long(sinceZxid);
      for (const kind of ["data", "exists", "children"] as const) {
        writer.list(paths[kind], (path) => writer.path(path));
      }
    },
    read: (_, zxid) => ({ zxid }),
  };
}
