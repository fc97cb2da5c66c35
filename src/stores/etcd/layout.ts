/**
 * The keys of this store in etcd.
 *
 * The entries of a lock are `<name>/<leaseHex>.<mode>.<weight>.<limit>.<number>`, with the name as
 * it is: where `etcdctl lock` and Go's concurrency package put theirs (`<name>/<leaseHex>`). The
 * last part of a key has no slash, so the name is all before the last slash, and the keys of two
 * names never meet. All other keys begin with `holdfast:`. A lock whose own name begins with that
 * is kept below `holdfast:lock/`. A namespace is written without slashes.
 */
import { type Mode, NO_LIMIT } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import type { Claim } from "../../store.js";
import { readMarkToken } from "../sequencer/entry-text.js";
import type { Entry, ListedMark, Listing, LockId } from "../sequencer/sequencer.js";
import type { Header, KeyValue, RangeRequest } from "./etcd-client.js";
import { leaseIdOf } from "./lease-id.js";
import { Revision } from "./revision.js";

const RESERVED = "holdfast:";
const MOVED = `${RESERVED}lock/`;
const MARK_ID = "done";
const ENTRY_ID = /^([0-9a-f]+)\.([xs])\.([1-9]\d*)\.([1-9]\d*|-)\.[\w-]+$/;
/** The entry of a program on Go's concurrency package, whose lease id may be negative. */
const GO_ID = /^(-?[0-9a-f]+)$/;
const NO_LEASE = "0";

/**
 * A key in a queue, and its kind. `lock`: an entry of ours or of Go's concurrency package, bound to
 * the lease in its name. `moved`: an entry in our form, bound to another lease; it is ours if that
 * lease has the key of a session. `mark`: the mark of a finished `once`. `foreign`: any other key.
 */
export interface FoundKey {
  readonly kv: KeyValue;
  readonly kind: "lock" | "moved" | "mark" | "foreign";
}

export class Layout {
  readonly #root: string;

  constructor(namespace: string) {
    this.#root = namespace === "" ? "" : `${RESERVED}in/${encodeURIComponent(namespace)}/`;
  }

  session(leaseId: string): Buffer {
    return Buffer.from(`${this.#root || RESERVED}session/${leaseId}`);
  }

  entry(lock: LockId, id: string): Buffer {
    return Buffer.from(`${this.#prefix(lock)}${id}`);
  }

  mark(lock: LockId): Buffer {
    return this.entry(lock, MARK_ID);
  }

  /** The key of the queue with this token; undefined where there is none. */
  find(lock: LockId, kvs: readonly KeyValue[], token: bigint): FoundKey | undefined {
    const length = Buffer.byteLength(this.#prefix(lock));
    for (const kv of kvs) {
      const id = kv.key.subarray(length);
      if (id.includes("/")) continue;
      const name = id.toString();
      const isMark = lock.space === "once" && name === MARK_ID;
      const found = isMark ? readMark(kv).token : BigInt(kv.create_revision);
      if (found === token) return { kv, kind: isMark ? markKind(kv) : entryKind(name, kv) };
    }
    return undefined;
  }

  /** All keys of a queue, and those of longer names that begin with its name and a slash. */
  queue(
    lock: LockId,
    look: "plain" | "texts" = "texts",
  ): RangeRequest & { readonly range_end: Buffer } {
    // The token of a mark is in its text.
    const keys_only = look === "plain" && lock.space !== "once";
    return { ...beginningWith(this.#prefix(lock)), keys_only };
  }

  /** All keys of the queues whose names begin with `prefix`, and keys that `nameIn` rejects. */
  queues(space: Space, prefix: string): RangeRequest {
    const isMoved = this.#isRaw(space) && prefix !== RESERVED && prefix.startsWith(RESERVED);
    return beginningWith((isMoved ? MOVED : this.#space(space)) + prefix);
  }

  /** The name of the queue that a key belongs to; null where the key is in no queue. */
  nameIn(space: Space, key: Buffer): string | null {
    const text = key.toString();
    const slash = text.lastIndexOf("/");
    const id = text.slice(slash + 1);
    const isEntry = isOwnId(id) || GO_ID.test(id) || (space === "once" && id === MARK_ID);
    if (slash < 1 || !isEntry) return null;
    const path = text.slice(0, slash);
    if (!this.#isRaw(space)) return path.slice(this.#space(space).length);
    if (!path.startsWith(RESERVED)) return path;
    return path.startsWith(MOVED) ? path.slice(MOVED.length) : null;
  }

  /** The queue, as a range of its keys shows it. */
  listing(lock: LockId, { revision }: Pick<Header, "revision">, kvs: KeyValue[]): Listing {
    const prefix = Buffer.from(this.#prefix(lock));
    const entries: Entry[] = [];
    let mark: ListedMark | null = null;
    for (const kv of kvs) {
      const id = kv.key.subarray(prefix.length);
      if (id.includes("/")) continue;
      const name = id.toString();
      if (lock.space === "once" && name === MARK_ID) mark = readMark(kv);
      else entries.push(readEntry(name, kv));
    }
    entries.sort((a, b) => (a.token < b.token ? -1 : 1));
    return { moment: new Revision(revision), entries, mark };
  }

  /** The ids of the entries of the queue that events are about, each with its last revision. */
  revisionsIn(lock: LockId, events: readonly { readonly kv: KeyValue }[]): Map<string, bigint> {
    const length = Buffer.byteLength(this.#prefix(lock));
    const revisions = new Map<string, bigint>();
    for (const { kv } of events) {
      const id = kv.key.subarray(length);
      if (!id.includes("/")) revisions.set(id.toString(), BigInt(kv.mod_revision));
    }
    return revisions;
  }

  /** Whether names are keys as they are. */
  #isRaw(space: Space): boolean {
    return space === "lock" && this.#root === "";
  }

  #space(space: Space): string {
    if (this.#root !== "") return `${this.#root}${space}/`;
    return space === "lock" ? "" : `${RESERVED}${space}/`;
  }

  #prefix({ space, name }: LockId): string {
    const isMoved = this.#isRaw(space) && name.startsWith(RESERVED);
    return `${isMoved ? MOVED : this.#space(space)}${name}/`;
  }
}

/** The last part of an entry's key. */
export function entryId(
  leaseId: string,
  { mode, weight, limit }: Pick<Claim, "mode" | "weight" | "limit">,
  name: string,
): string {
  const letter = mode === "exclusive" ? "x" : "s";
  return `${leaseId}.${letter}.${weight}.${limit === NO_LIMIT ? "-" : limit}.${name}`;
}

/** Whether the last part of a key has the form of an entry of ours. */
export function isOwnId(id: string): boolean {
  return ENTRY_ID.test(id);
}

/** A key of another form is an entry of another program, and holds alone. */
function readEntry(id: string, kv: KeyValue): Entry {
  const [, , letter, weight, limit] = ENTRY_ID.exec(id) ?? [];
  const mode: Mode = letter === "s" ? "shared" : "exclusive";
  return {
    id,
    mode,
    weight: Number(weight ?? 1),
    limit: limit === undefined || limit === "-" ? NO_LIMIT : Number(limit),
    token: BigInt(kv.create_revision),
    session: leaseIdOf(kv),
    text: kv.value.length > 0 ? kv.value.toString() : null,
  };
}

function entryKind(id: string, kv: KeyValue): FoundKey["kind"] {
  if (kv.lease === NO_LEASE) return "foreign";
  const [, lease] = ENTRY_ID.exec(id) ?? GO_ID.exec(id) ?? [];
  if (lease === leaseIdOf(kv)) return "lock";
  return isOwnId(id) ? "moved" : "foreign";
}

function markKind({ lease }: KeyValue): FoundKey["kind"] {
  return lease === NO_LEASE ? "foreign" : "mark";
}

function readMark(kv: KeyValue): ListedMark {
  const text = kv.value.toString();
  return { token: readMarkToken(text) ?? BigInt(kv.create_revision), session: leaseIdOf(kv), text };
}

function beginningWith(text: string): RangeRequest & { readonly range_end: Buffer } {
  if (text === "") return { key: Buffer.from([0]), range_end: Buffer.from([0]) };
  const key = Buffer.from(text);
  const end = Buffer.from(key);
  // The last byte of a text is never 0xff.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key, range_end: end };
}
