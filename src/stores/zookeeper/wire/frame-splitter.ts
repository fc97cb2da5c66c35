import { Unreadable } from "../../../events/foreign-data.js";

const SIZE_BYTES = 4;

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
