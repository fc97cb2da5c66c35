/**
 * Where things are in etcd.
 *
 * The entries of a lock are `<name>/<leaseHex>.<mode>.<weight>.<limit>.<number>`, with the name as
 * it is: just where `etcdctl lock` and Go's concurrency package put theirs (`<name>/<leaseHex>`).
 * The last part of a key never has a slash, so the name is what comes before the last one, and no
 * two names meet. Everything else begins with `holdfast:`; so that no lock meets that either, a
 * lock whose own name begins with it moves to `holdfast:lock/`. A namespace is written without
 * slashes.
 */
import { type Mode, NO_LIMIT } from "../../rules/fits.js";
import type { Space } from "../../rules/name.js";
import type { Claim } from "../../store.js";
import type { Entry, Listing, Mark, Place } from "../sequencer/sequencer.js";
import type { Header, KeyValue, RangeRequest } from "./etcd-client.js";

const RESERVED = "holdfast:";
const MOVED = `${RESERVED}lock/`;
const MARK_ID = "done";
const ENTRY_ID = /^([0-9a-f]+)\.([xs])\.([1-9]\d*)\.([1-9]\d*|-)\.[\w-]+$/;
/** What a program on Go's concurrency package writes; it may choose a negative lease id. */
const GO_ID = /^(-?[0-9a-f]+)$/;
const NO_LEASE = "0";

/**
 * What a key in a line is. `lock`: an entry bound to the lease that its name carries, of ours or of
 * Go's concurrency package. `moved`: an entry in our form, bound to another lease; it is ours if
 * that lease has the key of a session. `mark`: of a finished `once`. `foreign`: anything else.
 */
export interface FoundKey {
  readonly kv: KeyValue;
  readonly kind: "lock" | "moved" | "mark" | "foreign";
}

export class EtcdKeys {
  readonly #root: string;

  constructor(namespace: string) {
    this.#root = namespace === "" ? "" : `${RESERVED}in/${encodeURIComponent(namespace)}/`;
  }

  session(leaseId: string): Buffer {
    return Buffer.from(`${this.#root || RESERVED}session/${leaseId}`);
  }

  entry(place: Place, id: string): Buffer {
    return Buffer.from(`${this.#line(place)}${id}`);
  }

  mark(place: Place): Buffer {
    return this.entry(place, MARK_ID);
  }

  /** A key of the line, and what it is; undefined where no key of the line has this token. */
  find(place: Place, kvs: readonly KeyValue[], token: bigint): FoundKey | undefined {
    const length = Buffer.byteLength(this.#line(place));
    for (const kv of kvs) {
      const id = kv.key.subarray(length);
      if (id.includes("/")) continue;
      const name = id.toString();
      const isMark = place.space === "once" && name === MARK_ID;
      const own = isMark ? readMark(kv).token : BigInt(kv.create_revision);
      if (own === token) return { kv, kind: isMark ? markKind(kv) : entryKind(name, kv) };
    }
    return undefined;
  }

  /** All keys of a line, and those of longer names that begin with this one and a slash. */
  line(
    place: Place,
    look: "plain" | "texts" = "texts",
  ): RangeRequest & { readonly range_end: Buffer } {
    // A mark says in its text whose it is.
    const keys_only = look === "plain" && place.space !== "once";
    return { ...beginningWith(this.#line(place)), keys_only };
  }

  /** All keys of the lines whose names begin with `prefix`, and others that `nameIn` knows. */
  lines(space: Space, prefix: string): RangeRequest {
    const isMoved = this.#isRaw(space) && prefix !== RESERVED && prefix.startsWith(RESERVED);
    return beginningWith((isMoved ? MOVED : this.#space(space)) + prefix);
  }

  /** The name of the line that a key of `lines` belongs to; null when it is none of ours. */
  nameIn(space: Space, key: Buffer): string | null {
    const text = key.toString();
    const slash = text.lastIndexOf("/");
    const id = text.slice(slash + 1);
    const isEntry = isOwnId(id) || GO_ID.test(id) || (space === "once" && id === MARK_ID);
    if (slash < 1 || !isEntry) return null;
    const line = text.slice(0, slash);
    if (!this.#isRaw(space)) return line.slice(this.#space(space).length);
    if (!line.startsWith(RESERVED)) return line;
    return line.startsWith(MOVED) ? line.slice(MOVED.length) : null;
  }

  /** The line, as a range of its keys shows it. */
  listing(place: Place, { revision }: Pick<Header, "revision">, kvs: KeyValue[]): Listing {
    const prefix = Buffer.from(this.#line(place));
    const entries: Entry[] = [];
    let mark: Mark | null = null;
    for (const kv of kvs) {
      const id = kv.key.subarray(prefix.length);
      if (id.includes("/")) continue;
      const name = id.toString();
      if (place.space === "once" && name === MARK_ID) mark = readMark(kv);
      else entries.push(readEntry(name, kv));
    }
    entries.sort((a, b) => (a.order < b.order ? -1 : 1));
    return { at: BigInt(revision), entries, mark };
  }

  /** The entries of the line that events are about, each with the moment of its last. */
  idsIn(place: Place, events: readonly { readonly kv: KeyValue }[]): Map<string, bigint> {
    const length = Buffer.byteLength(this.#line(place));
    const ids = new Map<string, bigint>();
    for (const { kv } of events) {
      const id = kv.key.subarray(length);
      if (!id.includes("/")) ids.set(id.toString(), BigInt(kv.mod_revision));
    }
    return ids;
  }

  /** Names are keys as they are. */
  #isRaw(space: Space): boolean {
    return space === "lock" && this.#root === "";
  }

  #space(space: Space): string {
    if (this.#root !== "") return `${this.#root}${space}/`;
    return space === "lock" ? "" : `${RESERVED}${space}/`;
  }

  #line({ space, name }: Place): string {
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

/** Lease ids are signed numbers to etcd, and hexadecimal in keys. */
export function leaseNumber(leaseId: string): string {
  const [, sign = "", digits = ""] = /^(-?)(.*)$/.exec(leaseId) ?? [];
  return sign + BigInt(`0x${digits}`);
}

/** What does not parse is of another program, and holds alone. */
function readEntry(id: string, kv: KeyValue): Entry {
  const [, , letter, weight, limit] = ENTRY_ID.exec(id) ?? [];
  const mode: Mode = letter === "s" ? "shared" : "exclusive";
  return {
    id,
    mode,
    weight: Number(weight ?? 1),
    limit: limit === undefined || limit === "-" ? NO_LIMIT : Number(limit),
    order: BigInt(kv.create_revision),
    session: sessionOf(kv),
    text: kv.value.length > 0 ? kv.value.toString() : null,
  };
}

function entryKind(id: string, kv: KeyValue): FoundKey["kind"] {
  if (kv.lease === NO_LEASE) return "foreign";
  const [, lease] = ENTRY_ID.exec(id) ?? GO_ID.exec(id) ?? [];
  if (lease === sessionOf(kv)) return "lock";
  return isOwnId(id) ? "moved" : "foreign";
}

function markKind({ lease }: KeyValue): FoundKey["kind"] {
  return lease === NO_LEASE ? "foreign" : "mark";
}

function readMark(kv: KeyValue): Mark {
  const text = kv.value.toString();
  let token = BigInt(kv.create_revision);
  try {
    token = BigInt(JSON.parse(text).token);
  } catch {}
  return { token, session: sessionOf(kv), text };
}

export function sessionOf({ lease }: KeyValue): string {
  return BigInt(lease).toString(16);
}

function beginningWith(text: string): RangeRequest & { readonly range_end: Buffer } {
  if (text === "") return { key: Buffer.from([0]), range_end: Buffer.from([0]) };
  const key = Buffer.from(text);
  const end = Buffer.from(key);
  // The last byte of a text is never 0xff.
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return { key, range_end: end };
}
