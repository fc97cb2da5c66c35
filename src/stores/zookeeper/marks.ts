/**
 * The mark of a finished `once`. ZooKeeper keeps a plain znode forever, so the mark says itself
 * for how long it counts: the milliseconds, a line break, and the text of the family.
 */
import { readMarkToken } from "../../families/session/entry-text.js";
import type { ListedMark } from "../../families/session/sequencer.js";
import type { Clock } from "../../time/clock.js";
import type { Runtime } from "../../time/runtime.js";
import type { WatchTools } from "./queues.js";
import { childrenIn, type DataReply } from "./wire/requests.js";

const MARK = /^(\d{1,15})\n(.*)$/s;

export function markData(ttlMs: number, text: string): Buffer {
  return Buffer.from(`${Math.ceil(ttlMs)}\n${text}`);
}

export class Mark implements ListedMark {
  readonly token: bigint;
  readonly session = "";
  readonly text: string;
  readonly path: string;
  /** By the clock of the leader. A mark that cannot be read never expires. */
  readonly endsMs: number;

  constructor(path: string, { data, stat }: DataReply) {
    const [, ttlMs, text] = MARK.exec(data.toString()) ?? [];
    this.path = path;
    this.text = text ?? "";
    this.token = readMarkToken(this.text) ?? stat.czxid;
    this.endsMs = ttlMs === undefined ? Number.POSITIVE_INFINITY : stat.createdMs + Number(ttlMs);
  }
}

/**
 * Removes expired marks. ZooKeeper keeps a mark forever, and a name that is never used
 * again is never read again. So a client that leaves marks reads the queues of some names from time
 * to time: a reader removes expired marks.
 */

const EVERY_MS = 10 * 60_000;
const MAX_NAMES = 1_000;
const CALL_MS = 5_000;

export class MarkSweep {
  readonly #tools: WatchTools;
  readonly #runtime: Runtime;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(tools: WatchTools, runtime: Runtime) {
    this.#tools = tools;
    this.#runtime = runtime;
  }

  /** This client has left a mark. */
  onMark(): void {
    const nowMs = this.#runtime.clock.nowMs();
    if (nowMs - this.#lastMs < EVERY_MS) return;
    this.#lastMs = nowMs;
    // The next sweep may reach the marks that this one does not.
    this.#sweep().catch(() => {});
  }

  async #sweep(): Promise<void> {
    const { session, layout, reader } = this.#tools;
    const root = layout.space("once");
    const { names } = await session.use((one) => one.send(childrenIn(root)), CALL_MS);
    const queues = names.flatMap((child) => layout.nameIn(child) ?? []);
    // Another part each time.
    const first = Math.floor(this.#runtime.random.fraction() * queues.length);
    for (const name of [...queues.slice(first), ...queues.slice(0, first)].slice(0, MAX_NAMES)) {
      await session.use((one) => reader.read(one, { space: "once", name }, "plain"), CALL_MS);
    }
  }
}

/**
 * The wall clock of ZooKeeper's leader, as far as this process knows it: the time in a znode that
 * this process made, and the time since then. Marks end by it. Without such a znode, the wall clock
 * of this machine has to do.
 */
export class ServerClock {
  readonly #clock: Clock;
  #aheadMs: number | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * ZooKeeper made a znode at `createdMs`. Its time now is that or later: a mark may count longer
   * than it should, never shorter.
   */
  learn(createdMs: number): void {
    this.#aheadMs = createdMs - this.#clock.nowMs();
  }

  /** Whether the time is that of the leader. */
  get isKnown(): boolean {
    return this.#aheadMs !== null;
  }

  /** Not later than the time of the leader, if that leader answered last. */
  nowMs(): number {
    return this.#aheadMs === null
      ? this.#clock.wallUs() / 1000
      : this.#clock.nowMs() + this.#aheadMs;
  }
}
