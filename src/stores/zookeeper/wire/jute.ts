/**
 * The encoding of ZooKeeper's messages: numbers in network byte order, texts and buffers behind
 * their size, lists behind their count. A size of -1 stands for an absent value.
 *
 * Writer and reader also translate paths: the caller sees paths below the chroot, the server sees
 * whole paths. Bytes that are no such message throw `Unreadable`.
 */
import { Unreadable } from "../../../events/foreign-data.js";

const FIRST_BYTES = 256;
const SIZE_BYTES = 4;

export class JuteWriter {
  readonly #chroot: string;
  #bytes: Buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #end: number = SIZE_BYTES;

  /** `chroot`: "" or a path such as "/app". */
  constructor(chroot: string) {
    this.#chroot = chroot;
  }

  int(value: number): this {
    this.#reserve(4);
    this.#end = this.#bytes.writeInt32BE(value, this.#end);
    return this;
  }

  long(value: bigint): this {
    this.#reserve(8);
    this.#end = this.#bytes.writeBigInt64BE(value, this.#end);
    return this;
  }

  bool(value: boolean): this {
    this.#reserve(1);
    this.#end = this.#bytes.writeUInt8(value ? 1 : 0, this.#end);
    return this;
  }

  text(value: string): this {
    const size = Buffer.byteLength(value);
    this.int(size).#reserve(size);
    this.#end += this.#bytes.write(value, this.#end);
    return this;
  }

  buffer(value: Uint8Array): this {
    this.int(value.length).#reserve(value.length);
    this.#bytes.set(value, this.#end);
    this.#end += value.length;
    return this;
  }

  list<T>(items: readonly T[], write: (item: T) => void): this {
    this.int(items.length);
    for (const item of items) write(item);
    return this;
  }

  path(path: string): this {
    return this.text(path === "/" && this.#chroot !== "" ? this.#chroot : this.#chroot + path);
  }

  /** The message as a frame: its size, then its bytes. */
  frame(): Buffer {
    this.#bytes.writeInt32BE(this.#end - SIZE_BYTES, 0);
    return this.#bytes.subarray(0, this.#end);
  }

  #reserve(count: number): void {
    if (this.#end + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(2 * (this.#end + count));
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}

export class JuteReader {
  readonly #bytes: Buffer;
  readonly #chroot: string;
  #at = 0;

  constructor(bytes: Buffer, chroot: string) {
    this.#bytes = bytes;
    this.#chroot = chroot;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  int(): number {
    return this.#bytes.readInt32BE(this.#take(4));
  }

  long(): bigint {
    return this.#bytes.readBigInt64BE(this.#take(8));
  }

  bool(): boolean {
    const value = this.#bytes[this.#take(1)];
    if (value !== 0 && value !== 1) throw new Unreadable("a boolean");
    return value === 1;
  }

  /** An absent text is read as "". */
  text(): string {
    const size = this.#size();
    const start = this.#take(size);
    return this.#bytes.toString("utf8", start, start + size);
  }

  /** A copy: it does not keep the bytes of its connection in memory. An absent buffer is empty. */
  buffer(): Buffer {
    const size = this.#size();
    const start = this.#take(size);
    return Buffer.from(this.#bytes.subarray(start, start + size));
  }

  /** Each item takes at least one byte, so a false count cannot fill the memory. */
  list<T>(read: () => T): T[] {
    const count = this.#size();
    if (count > this.#bytes.length - this.#at) throw new Unreadable("a whole list");
    return Array.from({ length: count }, read);
  }

  path(): string {
    const path = this.text();
    if (this.#chroot === "") return path;
    if (path === this.#chroot) return "/";
    if (!path.startsWith(`${this.#chroot}/`)) throw new Unreadable("a path below the chroot");
    return path.slice(this.#chroot.length);
  }

  #size(): number {
    const size = this.int();
    if (size < -1) throw new Unreadable("a size");
    return Math.max(0, size);
  }

  #take(count: number): number {
    const start = this.#at;
    if (start + count > this.#bytes.length) throw new Unreadable("a whole message");
    this.#at = start + count;
    return start;
  }
}

/** Splits a stream into frames: a size of four bytes, then as many bytes. */
export class FrameSplitter {
  readonly #mostBytes: number;
  /** The parts of a frame whose end has not arrived, and their size. */
  #begun: Buffer[] = [];
  #begunBytes = 0;
  /** As many bytes are needed to read on. */
  #neededBytes = SIZE_BYTES;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Whether the end of a frame is missing. */
  get isInside(): boolean {
    return this.#begunBytes > 0;
  }

  /** The frames that are whole now. Throws `Unreadable` for a size that no frame can have. */
  *push(chunk: Buffer): Generator<Buffer, void> {
    this.#begun.push(chunk);
    this.#begunBytes += chunk.length;
    if (this.#begunBytes < this.#neededBytes) return;
    let rest = this.#begun.length === 1 ? chunk : Buffer.concat(this.#begun);
    this.#begun = [];
    this.#begunBytes = 0;
    this.#neededBytes = SIZE_BYTES;
    while (rest.length >= SIZE_BYTES) {
      const size = rest.readInt32BE(0);
      if (size < 0 || size > this.#mostBytes) throw new Unreadable(`a frame, not size ${size}`);
      const end = SIZE_BYTES + size;
      if (rest.length < end) {
        this.#neededBytes = end;
        break;
      }
      yield rest.subarray(SIZE_BYTES, end);
      rest = rest.subarray(end);
    }
    if (rest.length > 0) this.#begun.push(rest);
    this.#begunBytes = rest.length;
  }
}

/** The state of a znode. A zxid is the number of a transaction, common to all servers. */
export interface Stat {
  /** The transaction that made the znode. */
  readonly czxid: bigint;
  /** The transaction that last changed its data. */
  readonly mzxid: bigint;
  readonly createdMs: number;
  readonly modifiedMs: number;
  /** Counts changes of the data. */
  readonly version: number;
  /** Counts children that came or left. */
  readonly childVersion: number;
  readonly aclVersion: number;
  /** The session that an ephemeral znode ends with; 0 for other znodes. */
  readonly ephemeralOwner: bigint;
  readonly dataBytes: number;
  readonly childCount: number;
  /** The transaction in which a child last came or left. */
  readonly pzxid: bigint;
}

export function readStat(reader: JuteReader): Stat {
  return {
    czxid: reader.long(),
    mzxid: reader.long(),
    createdMs: Number(reader.long()),
    modifiedMs: Number(reader.long()),
    version: reader.int(),
    childVersion: reader.int(),
    aclVersion: reader.int(),
    ephemeralOwner: reader.long(),
    dataBytes: reader.int(),
    childCount: reader.int(),
    pzxid: reader.long(),
  };
}
