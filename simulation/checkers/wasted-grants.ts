import type { Entry } from "../history.js";

/** How long a grant that no program uses blocks the other waiters. */
export interface Waste {
  /** A handed-off grant without a confirm: the offer lapses. */
  readonly offerMs: number;
  /** A confirmed grant, or one that answered a request: the lease has to expire. */
  readonly leaseMs: number;
}

interface Wasted {
  readonly atMs: number;
  readonly client: string;
  isConfirmed: boolean;
  /** When the store last granted, confirmed or renewed it. */
  wordMs: number;
  /** When it was given back or revoked. */
  endedMs: number;
}

/** The unused grants of each name: their process died, or had given up. */
export class WastedGrants {
  readonly #names = new Map<string, Wasted[]>();
  readonly #waste: Waste;

  constructor(entries: readonly Entry[], waste: Waste) {
    this.#waste = waste;
    const used = new Set<string>();
    for (const entry of entries) {
      if (entry.type === "held") used.add(`${entry.name} ${entry.token}`);
    }
    const wasted = new Map<string, Wasted>();
    const byOwner = new Map<string, Wasted>();
    for (const entry of entries) {
      if (entry.type === "withdrawn") end(byOwner.get(entry.owner), entry.atMs);
      if (entry.type !== "granted" && entry.type !== "extended" && entry.type !== "revoked")
        continue;
      const key = `${entry.name} ${entry.token}`;
      if (entry.type === "revoked") end(wasted.get(key), entry.atMs);
      if (entry.type === "extended") confirm(wasted.get(key), entry.atMs);
      if (entry.type !== "granted" || used.has(key)) continue;
      const { atMs, client, isHandoff } = entry;
      const endedMs = Number.POSITIVE_INFINITY;
      const grant = { atMs, client, isConfirmed: !isHandoff, wordMs: atMs, endedMs };
      wasted.set(key, grant);
      byOwner.set(entry.owner, grant);
      this.#names.set(entry.name, [...(this.#names.get(entry.name) ?? []), grant]);
    }
  }

  /**
   * How long unused grants may keep a name from its waiters, from `fromMs` to `toMs`: each until it
   * is given back, at most for its offer or its lease. A process that does not confirm costs one
   * offer, however many of its waiters are in the queue. A process that dies right after its
   * confirm costs that lease, and then one offer.
   */
  costMs(name: string, fromMs: number, toMs: number): number {
    const { offerMs, leaseMs } = this.#waste;
    const offers = new Map<string, { firstMs: number; lapseMs: number; untilMs: number }>();
    let costMs = 0;
    for (const { atMs, client, isConfirmed, wordMs, endedMs } of this.#names.get(name) ?? []) {
      const longestMs = isConfirmed ? leaseMs : offerMs;
      const untilMs = Math.min(endedMs, wordMs + longestMs, toMs);
      const firstMs = Math.max(atMs, fromMs);
      if (untilMs <= firstMs) continue;
      if (isConfirmed) costMs += Math.min(leaseMs, untilMs - firstMs);
      const earlier = offers.get(client);
      if (isConfirmed || (earlier && atMs > earlier.lapseMs)) continue;
      // Offers that the client got before the first of them lapsed go on side by side.
      if (earlier) earlier.untilMs = Math.max(earlier.untilMs, untilMs);
      else offers.set(client, { firstMs, lapseMs: untilMs, untilMs });
    }
    for (const { firstMs, untilMs } of offers.values()) {
      costMs += Math.min(offerMs, untilMs - firstMs);
    }
    return costMs;
  }
}

function end(grant: Wasted | undefined, atMs: number): void {
  if (grant) grant.endedMs = Math.min(grant.endedMs, atMs);
}

function confirm(grant: Wasted | undefined, atMs: number): void {
  if (grant) Object.assign(grant, { isConfirmed: true, wordMs: atMs });
}
