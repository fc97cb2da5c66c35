/**
 * The znodes of this store in ZooKeeper.
 *
 * The queue of a lock is the znode `<chroot>/<name>`, and the entries are its children: where
 * Curator and kazoo put theirs, for that path. Names are percent-encoded, so a name is one part of
 * a path, and no encoded name has a colon. All other znodes are below `<chroot>/holdfast:…`.
 */

import type { LockId } from "../../families/session/sequencer.js";
import type { Request } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import { type Shape, znodePrefix } from "./znode-name.js";

const RESERVED = "holdfast:";
const MARK = "done-";
const MARK_NAME = /^done-[1-9]\d{0,18}$/;

export class Layout {
  /** "" or a path without a slash at its end. */
  readonly #chroot: string;
  readonly #root: string;
  readonly #shape: Shape;

  constructor(chroot: string, namespace: string, shape: Shape) {
    this.#chroot = chroot;
    this.#root = namespace === "" ? "" : `/${RESERVED}in/${encodeName(namespace)}`;
    this.#shape = shape;
  }

  /** The parent of all entries of a lock. */
  queue({ space, name }: LockId): string {
    return `${this.space(space)}/${encodeName(name)}`;
  }

  /** The parent of all queues of a space: "" is the root of ZooKeeper. */
  space(space: Space): string {
    const isRaw = space === "lock" && this.#root === "";
    const name = this.#root === "" ? `/${RESERVED}${space}` : `${this.#root}/${space}`;
    return this.#chroot + (isRaw ? "" : name);
  }

  /** The name of the queue that a child of `space(…)` is; null where the child is none. */
  nameIn(child: string): string | null {
    try {
      const name = decodeURIComponent(child);
      return encodeName(name) === child ? name : null;
    } catch {
      return null;
    }
  }

  /** The name of an entry, up to its sequence number; `id` is 32 hexadecimal digits, used once. */
  entryPrefix(request: Request, id: string): string {
    return znodePrefix(this.#shape, id, request);
  }

  /** The mark that the owner of an entry with this token leaves. No two have the same path. */
  mark(lock: LockId, token: bigint): string {
    return `${this.queue(lock)}/${MARK}${token}`;
  }

  /** A znode that is made for the time in it; `id` is used once. */
  timeZnode(id: string): string {
    return `${this.space("once")}/${RESERVED}time-${id}`;
  }

  /** Whether a child of the queue is a mark. */
  isMark(child: string): boolean {
    return MARK_NAME.test(child);
  }
}

/** `.` and `..` are no names of znodes, and `/zookeeper` belongs to ZooKeeper. */
function encodeName(name: string): string {
  if (name === "zookeeper") return "%7Aookeeper";
  const encoded = encodeURIComponent(name);
  return /^\.+$/.test(encoded) ? encoded.replaceAll(".", "%2E") : encoded;
}
