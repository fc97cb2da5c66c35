/**
 * The names of keys and channels. A key ends with the name of its lock as it is. Before the name
 * stands a prefix that no other namespace has, so no two locks share a key:
 *
 *   {hf:ns}           the register: names in use, and under the empty name the last token
 *   {hf:ns}:l:name    a lock (e: an election, o: a once) that needs more than a field there
 *   {hf:ns}e:l:name   its other keys, see lua/rules.lua
 *
 * All keys of one call must be in one slot of a Cluster. There a namespace has 64 shards, such as
 * `{hf:ns:7}`, whose slots are spread evenly: a call still carries many names, and every node
 * serves some shards.
 */
import { crc16, SLOTS } from "../redis-client/cluster-slot.js";

/** All clients of a Cluster must use the same number. */
const SHARDS = 64;

export class Layout {
  readonly #tag: string;
  readonly #shards: readonly string[];
  /** The first part of the name of every client's channel. */
  readonly channelPrefix: string;

  /** `keyPrefix` is the prefix that the driver puts before every key. */
  constructor(namespace: string, isCluster: boolean, keyPrefix: string, database: number) {
    // A brace in the namespace would end the tag early. A channel stands between spaces.
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
  const shards = new Map<number, string>();
  for (let number = 0; shards.size < SHARDS; number += 1) {
    const part = Math.floor(((crc16(`${tag}:${number}`) % SLOTS) * SHARDS) / SLOTS);
    if (!shards.has(part)) shards.set(part, `:${number}`);
  }
  return [...shards].sort(([a], [b]) => a - b).map(([, shard]) => shard);
}

function escaped(character: string): string {
  return encodeURIComponent(character);
}
