/**
 * The queues that were there a moment ago, as the last answer about each showed them.
 *
 * This is a guess: a queue may have gone since, or other entries may have come. It decides only how
 * an entry is asked for, and never whether the entry holds.
 */
import type { Clock } from "../../time/clock.js";
import { ANY_VERSION } from "./wire/requests.js";
import type { Stat } from "./wire/stat.js";

interface KnownQueue {
  readonly seenMs: number;
  /** The version of its data, where it had one entry at most, and no data; null otherwise. */
  readonly quietVersion: number | null;
  /** A stamp was refused: this client may not write the data, or other clients write it, too. */
  readonly refusesStamps: boolean;
}

/** ZooKeeper looks for empty queues once a minute, and removes them. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;

export class KnownQueues {
  readonly #clock: Clock;
  /** The queue that was seen longest ago comes first. */
  readonly #queues = new Map<string, KnownQueue>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** An answer showed the queue; null: it showed that there is none. */
  saw(queue: string, stat: Pick<Stat, "childCount" | "dataBytes" | "version"> | null): void {
    const refusesStamps = this.#queues.get(queue)?.refusesStamps ?? false;
    this.#queues.delete(queue);
    if (!stat) return;
    // The version is a signed number of 32 bits that wraps: one of its values stands for any.
    const isNamed = stat.version !== ANY_VERSION;
    const isQuiet = stat.childCount <= 1 && stat.dataBytes === 0 && isNamed;
    const quietVersion = isQuiet ? stat.version : null;
    this.#queues.set(queue, { seenMs: this.#clock.nowMs(), quietVersion, refusesStamps });
    const [oldest] = this.#queues.size > MAX_KNOWN ? this.#queues.keys() : [];
    if (oldest !== undefined) this.#queues.delete(oldest);
  }

  /**
   * ZooKeeper refused to write the data of the queue, and will again: for want of a right, or
   * because the stamps of other clients change its version.
   */
  sawRefusal(queue: string): void {
    const known = this.#queues.get(queue);
    if (known) this.#queues.set(queue, { ...known, refusesStamps: true });
  }

  /**
   * This client is about to write the data of the queue. The version changes, and the next answer
   * about the queue shows it.
   */
  onStamp(queue: string): void {
    const known = this.#queues.get(queue);
    if (known) this.#queues.set(queue, { ...known, quietVersion: null });
  }

  /**
   * `quietVersion`: the next entry is likely to be the only one, and may write the queue's empty
   * data, which has this version. Null for the whole: the queue may be missing.
   */
  guess(queue: string): { readonly quietVersion: number | null } | null {
    const known = this.#queues.get(queue);
    if (!known || this.#clock.nowMs() - known.seenMs >= KNOWN_MS) return null;
    return { quietVersion: known.refusesStamps ? null : known.quietVersion };
  }
}
