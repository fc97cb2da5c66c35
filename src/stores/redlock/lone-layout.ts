/**
 * The names of keys on a lone server, which may be a Cluster: all keys of a lock are in the slot of
 * its plain key. The key of a lock is the same as on several nodes (layout.ts). The other keys have
 * in braces a text that belongs to that slot:
 *
 *   holdfast:ns:b:{tag}l:name   its ballot
 *   holdfast:ns:w:{tag}l:name   its queue of waiters
 */
import { InvalidOptionError } from "../../errors.js";
import { keyOf, type Space } from "../../rules/name.js";
import { slotOf, tagOf } from "../redis-client/cluster-slot.js";
import { escapedGlob, type KeyLayout, type Keys, Layout } from "./layout.js";

export class LoneLayout implements KeyLayout {
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
