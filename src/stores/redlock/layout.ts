/**
 * The names of keys. A lock of the empty namespace has its own name as its key, as with clients of
 * the published algorithm. All other keys begin with `holdfast:`:
 *
 *   holdfast:node          the marker of this node, for all namespaces
 *   holdfast:ns:l:name     a lock of a namespace (e: an election, o: a once)
 *   holdfast:ns:b:l:name   its ballot
 *   holdfast:ns:w:l:name   its queue of waiters
 *
 * A lock of the empty namespace whose name begins with `holdfast:` has the key `holdfast::l:name`,
 * and a namespace is written without colons, so that no two locks share a key. A prefix counts as
 * the beginning of every name.
 */
import { keyOf, type Space } from "../../rules/name.js";

const RESERVED = "holdfast:";
const NODE = `${RESERVED}node`;

/** The keys of one call, in the order of the script. */
export type Keys = readonly [string, string, string];

/** How the keys of locks are named. */
export interface KeyLayout {
  keysOf(space: Space, name: string): Keys;
  /** The keys of a request about the node itself: the script touches only the first. */
  keysOfNode(): Keys;
  /** A glob for the ballots of names that begin with `prefix`, behind the driver's own prefix. */
  ballotPattern(keyPrefix: string, space: Space, prefix: string): string;
  /** The name that a ballot belongs to; null for another key that the glob finds. */
  nameOf(keyPrefix: string, space: Space, ballot: string): string | null;
}

export class Layout implements KeyLayout {
  /** All keys but the raw ones begin with this. */
  readonly root: string;
  readonly #isRaw: boolean;
  readonly #prefix: string;

  constructor(namespace: string, prefix = "") {
    this.#prefix = prefix;
    this.#isRaw = namespace === "";
    this.root = `${RESERVED}${encodeURIComponent(namespace)}:`;
  }

  /** The keys of a lock, in the order of the script, which finds the queue of waiters by itself. */
  keysOf(space: Space, given: string): Keys {
    const name = this.#prefix + given;
    const key = keyOf(space, name);
    const isRaw = this.#isRaw && space === "lock" && !name.startsWith(RESERVED);
    const lock = isRaw ? name : this.root + key;
    return [NODE, lock, `${this.root}b:${key}`];
  }

  keysOfNode(): Keys {
    return [NODE, NODE, NODE];
  }

  ballotPattern(keyPrefix: string, space: Space, prefix: string): string {
    return `${escapedGlob(`${keyPrefix}${this.root}b:${keyOf(space, this.#prefix + prefix)}`)}*`;
  }

  nameOf(keyPrefix: string, space: Space, ballot: string): string {
    return ballot.slice(`${keyPrefix}${this.root}b:${keyOf(space, this.#prefix)}`.length);
  }
}

/** The text as a glob that matches nothing else. */
export function escapedGlob(text: string): string {
  return text.replace(/[\\*?[\]^]/g, "\\$&");
}
