import type { Claim } from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import type { LockId, OwnEntry } from "../../families/session/sequencer.js";
import { type Mode, NO_LIMIT, type Request } from "../../rules/fits.js";

/** An entry of this process, with its znode and its queue. */
export class ZookeeperEntry implements OwnEntry {
  readonly lock: LockId;
  readonly claim: Claim;
  readonly text: string;
  /** The znode that all entries of the lock are children of. */
  readonly queue: string;
  /** The name of the znode, up to the sequence number that ZooKeeper adds. No other has it. */
  readonly prefix: string;
  /** The name of the znode; "" until ZooKeeper has answered that the znode was made. */
  id = "";
  token = 0n;
  isWithdrawn = false;
  /** How many requests to make the znode have no answer: each may have made one, or may still. */
  unanswered = 0;

  constructor(claim: Claim, queue: string, prefix: string, text: string) {
    const { space, name } = claim;
    this.lock = { space, name };
    this.claim = claim;
    this.text = text;
    this.queue = queue;
    this.prefix = prefix;
  }

  get path(): string {
    return `${this.queue}/${this.id}`;
  }

  get isMade(): boolean {
    return this.id !== "";
  }

  /** ZooKeeper made the znode in the transaction `czxid`. */
  made(id: string, czxid: bigint): void {
    this.id = id;
    this.token = czxid;
  }
}

export function zookeeperEntry(entry: OwnEntry): ZookeeperEntry {
  assert(entry instanceof ZookeeperEntry, "an entry comes back to the store that made it");
  return entry;
}

/**
 * The names of entries: a unique beginning, a marker, and the sequence number that ZooKeeper adds.
 *
 * Each shape has the markers of one kind of lock of another library, so that both sides order the
 * same znodes by the same numbers. A shared entry of the shape `mutex`, and every entry with a
 * weight or a limit, has these before its marker, where other libraries do not look:
 * `.<mode>.<weight>.<limit>`. An entry without them has the mode of its marker.
 */

/** `mutex`, `readWrite`: as Curator's locks of that kind. `kazoo`: as kazoo's, both kinds. */
export type Shape = (typeof SHAPES)[number];
export const SHAPES = ["mutex", "readWrite", "kazoo"] as const;

const MARKERS: Record<Shape, Record<Mode, string>> = {
  mutex: { exclusive: "-lock-", shared: "-lock-" },
  readWrite: { exclusive: "-__WRIT__", shared: "-__READ__" },
  kazoo: { exclusive: "__lock__", shared: "__rlock__" },
};

/** The marker of the latest possible place counts, as in the other libraries. */
const ENTRY = /^(.*)(lock-|__WRIT__|__READ__|__lock__|__rlock__)(-?\d{9,10})$/s;
const ASKED = /\.([xs])\.([1-9]\d*)\.([1-9]\d*|-)-?$/;
const SHARED_MARKERS = ["__READ__", "__rlock__"];
const LAST_SEQUENCE = 2 ** 31 - 1;

/** The meaning of an entry's name. */
export interface ZnodeName extends Request {
  /** See `showsOrder`. */
  readonly sequence: number;
}

/** The name of an entry up to its sequence number; `id` is 32 hexadecimal digits, used once. */
export function znodePrefix(shape: Shape, id: string, { mode, weight, limit }: Request): string {
  const marker = MARKERS[shape][mode];
  const isPlain = weight === 1 && limit === NO_LIMIT && (mode === "exclusive" || shape !== "mutex");
  const letter = mode === "exclusive" ? "x" : "s";
  const asked = isPlain ? "" : `.${letter}.${weight}.${limit === NO_LIMIT ? "-" : limit}`;
  return (shape === "kazoo" ? id : `_c_${uuidOf(id)}`) + asked + marker;
}

function uuidOf(id: string): string {
  const parts = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20)];
  return `${parts.join("-")}-${id.slice(20)}`;
}

/** Null for a name that is no entry's: other programs may keep their znodes beside the entries. */
export function readZnodeName(name: string): ZnodeName | null {
  const [, before = "", marker = "", digits] = ENTRY.exec(name) ?? [];
  if (digits === undefined) return null;
  const [, letter, weight, limit] = ASKED.exec(before) ?? [];
  const isShared = letter === undefined ? SHARED_MARKERS.includes(marker) : letter === "s";
  return {
    mode: isShared ? "shared" : "exclusive",
    weight: Number(weight ?? 1),
    limit: limit === undefined || limit === "-" ? NO_LIMIT : Number(limit),
    sequence: Number(digits),
  };
}

/**
 * Whether entries with such numbers were made in the order of their numbers.
 *
 * The counter of a queue is a signed number of 32 bits, and servers from 3.6 on only ever raise it.
 * So after 2^31 entries each new one gets the last number again, or a negative one if it comes
 * while the server still writes the entry before it. Older servers go on with negative numbers.
 */
export function showsOrder(sequence: number): boolean {
  // rule: order-by-numbers-ends
  return sequence >= 0 && sequence < LAST_SEQUENCE;
}
