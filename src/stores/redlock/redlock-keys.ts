/**
 * The names of keys. A lock of the empty namespace has its own name as its key, just where clients
 * of the published algorithm put theirs. Everything else begins with `holdfast:`:
 *
 *   holdfast:node          what this node is, for all namespaces
 *   holdfast:ns:l:name     a lock of a namespace (e: an election, o: a once)
 *   holdfast:ns:b:l:name   its ballot
 *   holdfast:ns:w:l:name   who waits for it
 *
 * A lock of the empty namespace whose name begins with `holdfast:` goes by `holdfast::l:name`, and
 * a namespace is written without colons, so that no two locks share a key.
 */
import { keyOf, type Space } from "../../rules/name.js";

const RESERVED = "holdfast:";
const NODE = `${RESERVED}node`;

export class RedlockKeys {
  readonly #root: string;
  readonly #isRaw: boolean;

  constructor(namespace: string) {
    this.#isRaw = namespace === "";
    this.#root = `${RESERVED}${encodeURIComponent(namespace)}:`;
  }

  /**
   * What a node touches for a name, in the order in which its script takes them. It finds those who
   * wait by itself.
   */
  of(space: Space, name: string): readonly [string, string, string] {
    const key = keyOf(space, name);
    const isRaw = this.#isRaw && space === "lock" && !name.startsWith(RESERVED);
    const lock = isRaw ? name : this.#root + key;
    return [NODE, lock, `${this.#root}b:${key}`];
  }

  /** What goes with the node alone; the others are never touched. */
  ofNode(): readonly [string, string, string] {
    return [NODE, NODE, NODE];
  }

  /** A glob for the ballots of names that begin with `prefix`, behind the driver's own prefix. */
  ballots(keyPrefix: string, space: Space, prefix: string): string {
    const start = `${keyPrefix}${this.#root}b:${keyOf(space, prefix)}`;
    return `${start.replace(/[\\*?[\]^]/g, "\\$&")}*`;
  }

  nameOf(keyPrefix: string, space: Space, ballot: string): string {
    return ballot.slice(`${keyPrefix}${this.#root}b:${keyOf(space, "")}`.length);
  }
}
