/**
 * The keys of the store in etcd, and the operations on them.
 *
 * The entries of a lock are `<name>/<leaseHex>.<mode>.<weight>.<limit>.<number>`, with the name as
 * it is: where `etcdctl lock` and Go's concurrency package put theirs (`<name>/<leaseHex>`). The
 * last part of a key has no slash, so the name is all before the last slash, and the keys of two
 * names never meet. All other keys begin with `holdfast:`. A lock whose own name begins with that
 * is kept below `holdfast:lock/`. A namespace is written without slashes.
 */

import type { Claim } from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import { readMarkToken } from "../../families/session/entry-text.js";
import type {
  Entry,
  ListedMark,
  Listing,
  LockId,
  Moment,
} from "../../families/session/sequencer.js";
import { type Mode, NO_LIMIT } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import type { Runtime } from "../../time/runtime.js";
import type {
  Compare,
  Header,
  KeyRange,
  KeyValue,
  RangeRequest,
  RequestOp,
} from "./wire/messages.js";

const RESERVED = "holdfast:";
const MOVED = `${RESERVED}lock/`;
const MARK_ID = "done";
const ENTRY_ID = /^([0-9a-f]+)\.([xs])\.([1-9]\d*)\.([1-9]\d*|-)\.[\w-]+$/;
/** The entry of a program on Go's concurrency package, whose lease id may be negative. */
const GO_ID = /^(-?[0-9a-f]+)$/;
const NO_LEASE = 0n;

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

  /** The key of the queue with this token. */
  find(lock: LockId, kvs: readonly KeyValue[], token: bigint): FoundKey | undefined {
    const length = Buffer.byteLength(this.#prefix(lock));
    for (const kv of kvs) {
      const id = kv.key.subarray(length);
      if (id.includes("/")) continue;
      const name = id.toString();
      const isMark = lock.space === "once" && name === MARK_ID;
      const found = isMark ? readMark(kv).token : kv.createRevision;
      if (found === token) return { kv, kind: isMark ? markKind(kv) : entryKind(name, kv) };
    }
    return undefined;
  }

  /** All keys of a queue, and those of longer names that begin with its name and a slash. */
  queue(lock: LockId, look: "plain" | "texts" = "texts"): KeyRange & RangeRequest {
    // The token of a mark is in its text.
    const keysOnly = look === "plain" && lock.space !== "once";
    return { ...beginningWith(this.#prefix(lock)), keysOnly };
  }

  /** All keys of the queues whose names begin with `prefix`, and keys that `nameIn` rejects. */
  queues(space: Space, prefix: string): RangeRequest {
    const isMoved = this.#isRaw(space) && prefix !== RESERVED && prefix.startsWith(RESERVED);
    return beginningWith((isMoved ? MOVED : this.#space(space)) + prefix);
  }

  /** The name of the queue that a key belongs to; null if it is in no queue. */
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
      if (!id.includes("/")) revisions.set(id.toString(), kv.modRevision);
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

/** A key of another form is an entry of another program, and holds exclusively. */
function readEntry(id: string, kv: KeyValue): Entry {
  const [, , letter, weight, limit] = ENTRY_ID.exec(id) ?? [];
  const mode: Mode = letter === "s" ? "shared" : "exclusive";
  return {
    id,
    mode,
    weight: Number(weight ?? 1),
    limit: limit === undefined || limit === "-" ? NO_LIMIT : Number(limit),
    token: kv.createRevision,
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
  return { token: readMarkToken(text) ?? kv.createRevision, session: leaseIdOf(kv), text };
}

function beginningWith(text: string): KeyRange {
  if (text === "") return { key: Buffer.from([0]), rangeEnd: Buffer.from([0]) };
  const key = Buffer.from(text);
  const end = Buffer.from(key);
  // The last byte of a text is never 0xff.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key, rangeEnd: end };
}

/**
 * A lease id, as hexadecimal digits. Chosen by us, not by etcd, so that a repeated request makes
 * the same lease again.
 */
export function newLeaseId(runtime: Runtime): string {
  return BigInt(`0x1${runtime.random.id().slice(0, 14)}`).toString(16);
}

/** The number of a lease, which requests to etcd contain. */
export function leaseNumber(leaseId: string): bigint {
  return leaseId.startsWith("-") ? -BigInt(`0x${leaseId.slice(1)}`) : BigInt(`0x${leaseId}`);
}

/** The id of the lease that a key is bound to; "0" without one. */
export function leaseIdOf({ lease }: Pick<KeyValue, "lease">): string {
  return lease.toString(16);
}

/** Names an entry and the session that it is in: `<leaseId>/<entryId>`. */
export interface Locator {
  readonly leaseId: string;
  readonly entryId: string;
}

export function locatorText({ leaseId, entryId }: Locator): string {
  return `${leaseId}/${entryId}`;
}

/** Null if the text, which users pass in, is not a locator. */
export function readLocator(text: string): Locator | null {
  const [leaseId = "", entryId = ""] = text.split("/");
  return /^[0-9a-f]+$/.test(leaseId) && isOwnId(entryId) ? { leaseId, entryId } : null;
}

/** A revision of etcd: one counter for the whole cluster, which rises with every write. */
export class Revision implements Moment {
  readonly number: bigint;

  constructor(number: bigint) {
    this.number = number;
  }

  isBefore(other: Moment): boolean {
    return this.number < revisionOf(other);
  }
}

export function revisionOf(moment: Moment): bigint {
  assert(moment instanceof Revision, "a moment comes back to the store that made it");
  return moment.number;
}

export function put(key: Buffer, text: string, lease: bigint): RequestOp {
  return { requestPut: { key, value: Buffer.from(text), lease } };
}

/** Writes into a key that exists, which stays bound to its lease. */
export function rewrite(key: Buffer, text: string): RequestOp {
  return { requestPut: { key, value: Buffer.from(text), ignoreLease: true } };
}

export function remove(key: Buffer): RequestOp {
  return { requestDeleteRange: { key } };
}

export function isAbsent(key: Buffer): Compare {
  return wasMadeAt(key, 0n);
}

export function wasMadeAt(key: Buffer, revision: bigint): Compare {
  return { result: "Equal", target: "Create", key, createRevision: revision };
}

export function isAt(key: Buffer, revision: bigint): Compare {
  return { result: "Equal", target: "Mod", key, modRevision: revision };
}
