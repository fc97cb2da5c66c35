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
 *
 * On a single server, which may be a Cluster, all keys of a lock are in the slot of its plain key.
 * Its other keys have in braces a text that belongs to that slot:
 *
 *   holdfast:ns:b:{tag}l:name   its ballot
 *   holdfast:ns:w:{tag}l:name   its queue of waiters
 */
import { InvalidOptionError } from "../../errors/index.js";
import { keyOf, type Space } from "../../rules/name.js";
import { slotOf, tagOf } from "../redis-client/cluster-slot.js";

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

export class SingleServerLayout implements KeyLayout {
  readonly #plain: Layout;
  readonly #prefix: string;
  readonly #driver: { readonly isCluster: boolean; readonly keyPrefix: string };

  constructor(
    namespace: string,
    prefix: string,
    driver: { readonly isCluster: boolean; readonly keyPrefix: string },
  ) {
    this.#plain = new Layout(namespace, prefix);
    this.#prefix = prefix;
    this.#driver = driver;
  }

  /** The keys of a lock, in the order of the script. */
  keysOf(space: Space, name: string): Keys {
    const [, lock] = this.#plain.keysOf(space, name);
    const { keyPrefix, isCluster } = this.#driver;
    const rest = `:{${tagOf(keyPrefix + lock)}}${keyOf(space, this.#prefix + name)}`;
    const { root } = this.#plain;
    const ballot = `${root}b${rest}`;
    if (isCluster && slotOf(keyPrefix + ballot) !== slotOf(keyPrefix + lock)) {
      throw new InvalidOptionError("keyPrefix", keyPrefix, "must not have an opening brace alone");
    }
    return [`${root}w${rest}`, lock, ballot];
  }

  keysOfNode(): Keys {
    return this.#plain.keysOfNode();
  }

  ballotPattern(keyPrefix: string, space: Space, prefix: string): string {
    const start = escapedGlob(`${keyPrefix}${this.#plain.root}b:{`);
    return `${start}*}${escapedGlob(keyOf(space, this.#prefix + prefix))}*`;
  }

  /** Null for a key that only looks like a ballot of this space. */
  nameOf(keyPrefix: string, space: Space, ballot: string): string | null {
    const start = `${keyPrefix}${this.#plain.root}b:{`.length;
    const key = ballot.slice(ballot.indexOf("}", start) + 1);
    const before = keyOf(space, this.#prefix);
    return key.startsWith(before) ? key.slice(before.length) : null;
  }
}

/** The text as a glob that matches nothing else. */
function escapedGlob(text: string): string {
  return text.replace(/[\\*?[\]^]/g, "\\$&");
}
