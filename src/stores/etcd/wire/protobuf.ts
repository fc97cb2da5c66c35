/**
 * Encodes and decodes the Protocol Buffers messages of etcd.
 *
 * A message is a table of its fields. 64-bit numbers are bigints. The encoder writes the fields
 * that are given. The decoder fills missing fields with their defaults, skips fields that the table
 * does not have, and throws `Unreadable` for bytes that are not a message.
 */
import { Unreadable } from "../../../events/foreign-data.js";

/** The kind of a value; a list of words is an enumeration. `int` is a signed 64-bit number. */
type Kind = "int" | "bool" | "bytes" | "text" | readonly string[] | Message;

/** The number of a field, the kind of its value, and whether it is a list. */
type Field = readonly [number: number, kind: Kind, list?: "list"];

type Values = Record<string, unknown>;

const VARINT = 0;
const FIXED_64 = 1;
const SIZED = 2;
const FIXED_32 = 5;
const MAX_VARINT_BYTES = 10;
const INITIAL_BYTES = 1_024;
const NO_BYTES = Buffer.alloc(0);

export class Message<T = unknown> {
  readonly #fieldsOf: () => Readonly<Record<string, Field>>;
  #fields: (readonly [name: string, field: Field])[] | null = null;
  #byNumber = new Map<number, readonly [name: string, field: Field]>();

  /** `fieldsOf` is called at first use, because messages may contain each other. */
  constructor(fieldsOf: () => Readonly<Record<string, Field>>) {
    this.#fieldsOf = fieldsOf;
  }

  encode(value: T): Buffer {
    const writer = new Writer();
    this.write(writer, value as Values);
    return writer.finish();
  }

  decode(bytes: Buffer): T {
    return this.read(new Reader(bytes, 0, bytes.length)) as T;
  }

  /** Writes the last field first, because the writer goes backwards. */
  write(writer: Writer, values: Values): void {
    const fields = this.#table();
    for (let index = fields.length - 1; index >= 0; index -= 1) {
      const [name, [number, kind, list]] = fields[index] as (typeof fields)[number];
      const value = values[name];
      if (value === undefined) continue;
      if (list === undefined) writeField(writer, number, kind, value);
      else {
        const items = value as unknown[];
        for (let at = items.length - 1; at >= 0; at -= 1) {
          writeField(writer, number, kind, items[at]);
        }
      }
    }
  }

  read(reader: Reader): Values {
    const values: Values = {};
    for (const [name, [, kind, list]] of this.#table()) {
      values[name] = list === undefined ? defaultOf(kind) : [];
    }
    while (!reader.isAtEnd) {
      const tag = reader.number();
      const wireType = tag & 7;
      const found = this.#byNumber.get(tag >>> 3);
      if (!found) {
        reader.skip(wireType);
        continue;
      }
      const [name, [, kind, list]] = found;
      if (wireType !== wireTypeOf(kind)) throw new Unreadable("another type of field");
      const value = readValue(reader, kind);
      if (list === undefined) values[name] = value;
      else (values[name] as unknown[]).push(value);
    }
    return values;
  }

  #table(): (readonly [name: string, field: Field])[] {
    if (this.#fields) return this.#fields;
    this.#fields = Object.entries(this.#fieldsOf());
    this.#byNumber = new Map(this.#fields.map((entry) => [entry[1][0], entry]));
    return this.#fields;
  }
}

function wireTypeOf(kind: Kind): number {
  return kind === "int" || kind === "bool" || Array.isArray(kind) ? VARINT : SIZED;
}

function defaultOf(kind: Kind): unknown {
  if (kind === "int") return 0n;
  if (kind === "bool") return false;
  if (kind === "bytes") return NO_BYTES;
  if (kind === "text") return "";
  return kind instanceof Message ? undefined : kind[0];
}

function writeField(writer: Writer, number: number, kind: Kind, value: unknown): void {
  if (kind === "int") writer.int(value as bigint | number);
  else if (kind === "bool") writer.int(value ? 1 : 0);
  else if (kind === "bytes") writer.sized(value as Buffer);
  else if (kind === "text") writer.sized(Buffer.from(value as string));
  else if (kind instanceof Message) {
    const end = writer.mark();
    kind.write(writer, value as Values);
    writer.sizeSince(end);
  } else writer.int(kind.indexOf(value as string));
  writer.int(number * 8 + wireTypeOf(kind));
}

function readValue(reader: Reader, kind: Kind): unknown {
  if (kind === "int") return reader.int();
  if (kind === "bool") return reader.int() !== 0n;
  if (kind instanceof Message) return kind.read(reader.part());
  if (kind === "bytes") return reader.bytes();
  if (kind === "text") return reader.bytes().toString();
  return kind[reader.number()];
}

/** Writes from the end to the beginning, because the size of a message comes before it. */
class Writer {
  #bytes = Buffer.allocUnsafe(INITIAL_BYTES);
  #at = INITIAL_BYTES;

  finish(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  /** The distance from the end, which does not change when the buffer grows. */
  mark(): number {
    return this.#bytes.length - this.#at;
  }

  sizeSince(mark: number): void {
    this.int(this.mark() - mark);
  }

  sized(value: Buffer): void {
    this.#make(value.length);
    value.copy(this.#bytes, this.#at);
    this.int(value.length);
  }

  int(value: bigint | number): void {
    const number = Number(value);
    if (number >= 0 && number <= 0x7f) {
      this.#make(1);
      this.#bytes[this.#at] = number;
      return;
    }
    const groups: number[] = [];
    if (Number.isSafeInteger(number) && number >= 0) {
      for (let rest = number; rest > 0; rest = Math.floor(rest / 128)) groups.push(rest % 128);
    } else {
      // A negative number is written as its two's complement.
      let rest = BigInt.asUintN(64, BigInt(value));
      for (; rest > 0n; rest >>= 7n) groups.push(Number(rest & 0x7fn));
    }
    this.#make(groups.length);
    groups.forEach((group, index) => {
      this.#bytes[this.#at + index] = index < groups.length - 1 ? group | 0x80 : group;
    });
  }

  #make(count: number): void {
    while (this.#at < count) {
      const grown = this.#bytes.length;
      const larger = Buffer.allocUnsafe(grown * 2);
      this.#bytes.copy(larger, grown + this.#at, this.#at);
      this.#bytes = larger;
      this.#at += grown;
    }
    this.#at -= count;
  }
}

class Reader {
  readonly #bytes: Buffer;
  readonly #end: number;
  #at: number;

  constructor(bytes: Buffer, at: number, end: number) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#end;
  }

  /** A signed 64-bit number. */
  int(): bigint {
    const value = this.#varint();
    return typeof value === "number" ? BigInt(value) : BigInt.asIntN(64, value);
  }

  /** A tag, a size or a word of an enumeration, which have at most 32 bits. */
  number(): number {
    const value = this.#varint();
    if (typeof value === "number" && value <= 0xffff_ffff) return value;
    throw new Unreadable("a small number");
  }

  bytes(): Buffer {
    const [from, end] = this.#sized();
    return this.#bytes.subarray(from, end);
  }

  part(): Reader {
    const [from, end] = this.#sized();
    return new Reader(this.#bytes, from, end);
  }

  skip(wireType: number): void {
    if (wireType === VARINT) this.int();
    else if (wireType === SIZED) this.#sized();
    else if (wireType === FIXED_64) this.#pass(8);
    else if (wireType === FIXED_32) this.#pass(4);
    else throw new Unreadable("a type of field");
  }

  /** Unsigned; a bigint only if a number cannot hold it. */
  #varint(): number | bigint {
    const from = this.#at;
    let number = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#byte();
      number += (byte & 0x7f) * factor;
      if (byte < 0x80) break;
      if (this.#at - from >= MAX_VARINT_BYTES) throw new Unreadable("a number");
    }
    if (Number.isSafeInteger(number)) return number;
    let exact = 0n;
    for (let at = this.#at - 1; at >= from; at -= 1) {
      exact = (exact << 7n) | BigInt((this.#bytes[at] as number) & 0x7f);
    }
    return exact;
  }

  #sized(): [from: number, end: number] {
    const size = this.number();
    const from = this.#at;
    this.#pass(size);
    return [from, this.#at];
  }

  #pass(count: number): void {
    if (count > this.#end - this.#at) throw new Unreadable("more bytes");
    this.#at += count;
  }

  #byte(): number {
    if (this.isAtEnd) throw new Unreadable("more bytes");
    const byte = this.#bytes[this.#at] as number;
    this.#at += 1;
    return byte;
  }
}
