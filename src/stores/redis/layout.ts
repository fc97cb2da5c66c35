/**
 * The names of keys and channels. A name of a lock is kept as it is, behind a prefix that no
 * namespace can forge, so no two locks meet:
 *
 *   {hf:ns}           the register: names in use, and under the empty name the last token
 *   {hf:ns}:l:name    a lock (e: an election, o: a once) that needs more than a line there
 *   {hf:ns}e:l:name   what belongs to it, see lua/state.lua
 *
 * All keys of one call must be in one slot of a Cluster. There a namespace has 64 shards, as
 * `{hf:ns:7}`, whose slots are spread evenly: calls still carry many names, and every node gets its
 * part.
 */
import { crc16, SLOTS } from "../redis-client/cluster-slot.js";

/** Protocol: every client of a Cluster must use the same number. */
const SHARDS = 64;

export class Layout {
  readonly #tag: string;
  readonly #shards: readonly string[];
  /** What the channel of every client begins with. */
  readonly channelPrefix: string;

  /** `keyPrefix` is what the driver puts before every key by itself. */
  constructor(namespace: string, isCluster: boolean, keyPrefix: string, database: number) {
    // The tag must end where we end it, and a channel stands between spaces.
    this.#tag = `hf:${namespace.replace(/[%{}\s]/g, escaped)}`;
    this.#shards = isCluster ? spread(this.#tag) : [];
    const prefix = keyPrefix.replace(/\s/g, escaped);
    this.channelPrefix = `${prefix}{${this.#tag}}@${database}:`;
  }

  get shards(): readonly string[] {
    return this.#shards.length > 0 ? this.#shards : [""];
  }

  shardOf(key: string): string {
    const { length } = this.#shards;
    return length === 0 ? "" : (this.#shards[crc16(key) % length] ?? "");
  }

  registerOf(shard: string): string {
    return `{${this.#tag}${shard}}`;
  }
}

/** A glob that finds, in the register, the names that begin with `prefix`. */
export function patternOf(prefix: string): string {
  return `${prefix.replace(/[\\*?[\]^]/g, "\\$&")}*`;
}

/** The first tags whose slots fall into each of the equal parts of all slots. */
function spread(tag: string): string[] {
  const shards: (string | undefined)[] = Array.from({ length: SHARDS });
  let missing = SHARDS;
  for (let number = 0; missing > 0; number += 1) {
    const part = Math.floor(((crc16(`${tag}:${number}`) % SLOTS) * SHARDS) / SLOTS);
    if (shards[part] !== undefined) continue;
    shards[part] = `:${number}`;
    missing -= 1;
  }
  return shards as string[];
}

function escaped(character: string): string {
  return encodeURIComponent(character);
}
