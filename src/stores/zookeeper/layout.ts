/**
 * The znodes of this store in ZooKeeper.
 *
 * The queue of a lock is the znode `<chroot>/<name>`, and the entries are its children: where
 * Curator and kazoo put theirs, for that path. Names are percent-encoded, so a name is one part of
 * a path, and no encoded name has a colon. All other znodes are below `<chroot>/holdfast:…`.
 */

import { assert } from "../../errors/assert.js";
import type { LockId, Moment } from "../../families/session/sequencer.js";
import type { Request } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import { hasCode } from "./errors.js";
import type { Connection } from "./wire/connection.js";
import { type Acl, create2 } from "./wire/requests.js";
import { MAX_TIMEOUT_MS, type SessionKey } from "./wire/session.js";
import { readZnodeName, type Shape, znodePrefix } from "./zookeeper-entry.js";

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

/**
 * Names an entry and the session that it is in: `<session>/<password>/<timeoutMs>/<znode>`. It is a
 * secret: any process that has it can resume the session.
 */
export interface Locator {
  readonly key: SessionKey;
  readonly timeoutMs: number;
  readonly znode: string;
}

const LOCATOR = /^([0-9a-f]{1,16})\/([0-9a-f]{32})\/([1-9]\d{0,9})\/([^/]+)$/;

export function locatorText({ key: { id, password }, timeoutMs, znode }: Locator): string {
  const session = BigInt.asUintN(64, id).toString(16);
  return `${session}/${password.toString("hex")}/${timeoutMs}/${znode}`;
}

/** A locator may have come by any way: null where the text is none. */
export function readLocator(text: string): Locator | null {
  const [, session, password = "", timeout, znode = ""] = LOCATOR.exec(text) ?? [];
  if (session === undefined || readZnodeName(znode) === null) return null;
  const timeoutMs = Number(timeout);
  if (timeoutMs > MAX_TIMEOUT_MS) return null;
  const key = {
    id: BigInt.asIntN(64, BigInt(`0x${session}`)),
    password: Buffer.from(password, "hex"),
  };
  return { key, timeoutMs, znode };
}

/**
 * A moment of ZooKeeper: the number of a transaction, which rises with every write. An event of a
 * watch has no number. It happened after the reply that set the watch: `isLater` says so.
 */
export class Zxid implements Moment {
  readonly number: bigint;
  readonly #isLater: boolean;

  constructor(number: bigint, isLater = false) {
    this.number = number;
    this.#isLater = isLater;
  }

  /** A moment after this one, and not after any transaction that followed. */
  get later(): Zxid {
    return new Zxid(this.number, true);
  }

  isBefore(other: Moment): boolean {
    const { number, isLater } = zxidOf(other).#parts;
    return this.number < number || (this.number === number && !this.#isLater && isLater);
  }

  get #parts(): { readonly number: bigint; readonly isLater: boolean } {
    return { number: this.number, isLater: this.#isLater };
  }
}

export function zxidOf(moment: Moment): Zxid {
  assert(moment instanceof Zxid, "a moment comes back to the store that told it");
  return moment;
}

/**
 * Makes the znodes above an entry. They are containers: ZooKeeper removes each some time after its
 * last child has left, also between two requests of ours.
 */

export async function makeParents(
  connection: Connection,
  path: string,
  acl: readonly Acl[],
): Promise<void> {
  const parts = path.split("/").slice(1);
  const paths = parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`);
  const failures = await Promise.all(
    paths.map((one) => {
      const made = connection.send(create2(one, { mode: "container", acl }));
      return made.then(
        () => null,
        (error: unknown) => (hasCode(error, "node_exists") ? null : error),
      );
    }),
  );
  // A znode high up may exist although this client may not make it: the last one has to be there.
  if (failures.at(-1) !== null) throw failures.find((error) => error !== null);
}
