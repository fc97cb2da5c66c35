import { setTimeout as pause } from "node:timers/promises";
import type { Entry } from "./history.js";
import { nowMs } from "./lateness.js";

interface Sighting {
  readonly atMs: number;
  /** A value or a token; null where the lock is free. */
  readonly by: string | null;
}

/** Reads the store again and again, and keeps every change. */
export class TruthWatch {
  readonly #read: () => Promise<string | null>;
  readonly #everyMs: number;
  readonly #sightings: Sighting[] = [];
  readonly #end = new AbortController();
  readonly #watching: Promise<void>;
  #longestMs = 0;

  constructor(read: () => Promise<string | null>, everyMs: number) {
    this.#read = read;
    this.#everyMs = everyMs;
    this.#watching = this.#watch();
  }

  /** The longest time that an answer took. */
  get longestMs(): number {
    return this.#longestMs;
  }

  async end(): Promise<readonly Sighting[]> {
    this.#end.abort();
    await this.#watching;
    return this.#sightings;
  }

  async #watch(): Promise<void> {
    while (!this.#end.signal.aborted) {
      // A store that does not answer says nothing; the last truth stands.
      const askedMs = nowMs();
      const by = await this.#read().catch(() => undefined);
      if (by !== undefined) this.#longestMs = Math.max(this.#longestMs, nowMs() - askedMs);
      if (by !== undefined && by !== (this.#sightings.at(-1)?.by ?? null)) {
        this.#sightings.push({ atMs: nowMs(), by });
      }
      await pause(this.#everyMs);
    }
  }
}

/**
 * The truths of a history. A value counts as a ghost when the process that set it neither asked nor
 * believed while it was there.
 */
export function truthsOf(
  sightings: readonly Sighting[],
  entries: readonly Entry[],
  laneOf: (by: string) => string | null,
): Entry[] {
  return sightings.map(({ atMs, by }, at) => {
    if (by === null) return { atMs, type: "truth", holder: null };
    const believed = entries.find((entry) => entry.type === "believes" && entry.token === by);
    if (believed && "lane" in believed) {
      return { atMs, type: "truth", holder: believed.lane, token: by };
    }
    const lane = laneOf(by);
    const toMs = sightings[at + 1]?.atMs ?? Number.POSITIVE_INFINITY;
    const isKnown = lane !== null && isInvolved(entries, lane, atMs, toMs);
    return { atMs, type: "truth", holder: isKnown ? lane : "ghost" };
  });
}

/** Whether the process asks or believes at a time between the two. */
function isInvolved(
  entries: readonly Entry[],
  lane: string,
  fromMs: number,
  toMs: number,
): boolean {
  const of = entries.filter((entry) => "lane" in entry && entry.lane === lane);
  const from = of.find(({ type }) => type === "asks")?.atMs ?? Number.POSITIVE_INFINITY;
  const to = of.find(({ type }) => type === "releases" || type === "disbelieves")?.atMs;
  return from <= toMs && (to ?? Number.POSITIVE_INFINITY) > fromMs;
}
