/**
 * The mark of a finished `once`. ZooKeeper keeps a plain znode for ever, so the mark says itself
 * for how long it counts: the milliseconds, a line break, and the text of the family.
 */
import { readMarkToken } from "../../families/session/entry-text.js";
import type { ListedMark } from "../../families/session/sequencer.js";
import type { DataReply } from "./wire/requests.js";

const MARK = /^(\d{1,15})\n(.*)$/s;

export function markData(ttlMs: number, text: string): Buffer {
  return Buffer.from(`${Math.ceil(ttlMs)}\n${text}`);
}

export class Mark implements ListedMark {
  readonly token: bigint;
  readonly session = "";
  readonly text: string;
  readonly path: string;
  /** By the clock of the leader. A mark that cannot be read counts for ever. */
  readonly endsMs: number;

  constructor(path: string, { data, stat }: DataReply) {
    const [, ttlMs, text] = MARK.exec(data.toString()) ?? [];
    this.path = path;
    this.text = text ?? "";
    this.token = readMarkToken(this.text) ?? stat.czxid;
    this.endsMs = ttlMs === undefined ? Number.POSITIVE_INFINITY : stat.createdMs + Number(ttlMs);
  }
}
