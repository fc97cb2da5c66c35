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
    for (const entry of entries) {
      if (entry.type === "extended") {
        const grant = wasted.get(`${entry.name} ${entry.token}`);
        if (grant) grant.isConfirmed = true;
      }
      if (entry.type !== "granted") continue;
      const key = `${entry.name} ${entry.token}`;
      if (used.has(key)) continue;
      const grant = { atMs: entry.atMs, client: entry.client, isConfirmed: !entry.isHandoff };
      wasted.set(key, grant);
      this.#names.set(entry.name, [...(this.#names.get(entry.name) ?? []), grant]);
    }
  }

  /**
   * How long unused grants may keep a name from its waiters. A process that does not confirm costs
   * one offer, however many of its waiters are in the queue. A process that dies right after its
   * confirm costs that lease, and then one offer.
   */
  costMs(name: string, fromMs: number, toMs: number): number {
    const { offerMs, leaseMs } = this.#waste;
    const silent = new Set<string>();
    let costMs = 0;
    for (const { atMs, client, isConfirmed } of this.#names.get(name) ?? []) {
      if (atMs < fromMs - leaseMs || atMs > toMs) continue;
      if (isConfirmed) {
        costMs += leaseMs;
        continue;
      }
      if (!silent.has(client)) costMs += offerMs;
      silent.add(client);
    }
    return costMs;
  }
}
