import type { Entry, EntryOf } from "../history.js";

/** How much the clocks of the store and of a process may differ. */
export const CLOCK_TOLERANCE = 1.01;

/** One grant as the store saw it. */
export interface GrantAccount {
  readonly granted: EntryOf<"granted">;
  /** When the store granted, confirmed or renewed it. */
  readonly wordsMs: number[];
  revokedMs: number;
  /** When the store ended its session, because the time of the session was over. */
  lapsedMs: number;
  /** The processes that the store told of its end, and when each of them knew. */
  readonly toldMs: Map<string, number>;
}

/** When a process knew from the store that the grant had ended. */
export function toldMsOf(grant: GrantAccount | undefined, process: string): number {
  return grant?.toldMs.get(process) ?? Number.POSITIVE_INFINITY;
}

/** The last time up to `beforeMs` at which the store granted, confirmed or renewed a grant. */
export function lastWordMs(grant: GrantAccount | undefined, beforeMs: number): number {
  return grant?.wordsMs.findLast((atMs) => atMs <= beforeMs) ?? Number.NEGATIVE_INFINITY;
}

/** The grants of the store in a history, and the faults of the store. */
export class StoreAccount {
  readonly #grants = new Map<string, Map<bigint, GrantAccount[]>>();
  readonly #withdrawn: EntryOf<"withdrawn">[] = [];
  readonly #steps: EntryOf<"stepped">[] = [];
  readonly #forgotMs: number[] = [];
  readonly #restarts: EntryOf<"node">[] = [];

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) this.#read(entry);
  }

  /**
   * The grant that a lease was made from. A store that forgot may give its token again, even to
   * the same owner: then it is the latest grant.
   */
  grantOf({ name, token, owner, atMs }: EntryOf<"held">): GrantAccount | undefined {
    const grants = this.#grants.get(name)?.get(token);
    const own = grants?.findLast(({ granted }) => granted.owner === owner && granted.atMs <= atMs);
    return own ?? this.#latest(name, token, atMs);
  }

  /** How often the store executed a release of the owner of a lease. */
  withdrawals(held: EntryOf<"held">, fromMs: number, toMs: number): number {
    const owner = this.grantOf(held)?.granted.owner;
    return this.#withdrawn.filter(
      (entry) => entry.owner === owner && entry.atMs >= fromMs && entry.atMs <= toMs,
    ).length;
  }

  hasForgotten(fromMs: number, toMs: number): boolean {
    return this.#forgotMs.some((atMs) => atMs >= fromMs && atMs <= toMs);
  }

  /** A node of a quorum restarted, and does not know any more that it voted for the owner. */
  hasRestarted(owner: string, toMs: number): boolean {
    return this.#restarts.some(({ atMs, owners }) => owners?.includes(owner) && atMs <= toMs);
  }

  /**
   * By how much the clock jumped ahead in all, which is how much earlier leases ended. If one node
   * of several jumps, only the votes that it gave before end early.
   */
  steppedAheadMs(fromMs: number, toMs: number, owner?: string): number {
    return this.#steps
      .filter(({ atMs, byMs, owners }) => {
        const isSince = owners ? owners.some((one) => one === owner) : atMs >= fromMs;
        return byMs > 0 && isSince && atMs <= toMs;
      })
      .reduce((sum, { byMs }) => sum + byMs, 0);
  }

  #latest(name: string, token: bigint, atMs: number): GrantAccount | undefined {
    const grants = this.#grants.get(name)?.get(token);
    return grants?.findLast(({ granted }) => granted.atMs <= atMs);
  }

  #endedBy(told: EntryOf<"told">): readonly GrantAccount[] {
    const grants = this.#grants.get(told.name);
    if (!grants) return [];
    if ("token" in told) return grants.get(told.token) ?? [];
    // One batch may say that a grant has ended, and then grant the lock again.
    const { owner, saidMs } = told;
    const all = [...grants.values()].flat();
    return all.filter(({ granted }) => granted.owner === owner && granted.atMs < saidMs);
  }

  #read(entry: Entry): void {
    switch (entry.type) {
      case "granted": {
        const account = {
          granted: entry,
          wordsMs: [entry.atMs],
          revokedMs: Number.POSITIVE_INFINITY,
          lapsedMs: Number.POSITIVE_INFINITY,
          toldMs: new Map(),
        };
        const grants = this.#grants.get(entry.name) ?? new Map<bigint, GrantAccount[]>();
        this.#grants.set(entry.name, grants);
        for (let turn = 0; turn < entry.span; turn += 1) {
          const token = entry.token + BigInt(turn);
          grants.set(token, [...(grants.get(token) ?? []), account]);
        }
        return;
      }
      case "extended":
        this.#latest(entry.name, entry.token, entry.atMs)?.wordsMs.push(entry.atMs);
        return;
      case "revoked": {
        const grant = this.#latest(entry.name, entry.token, entry.atMs);
        if (grant) grant.revokedMs = entry.atMs;
        return;
      }
      case "lapsed": {
        const grant = this.#latest(entry.name, entry.token, entry.atMs);
        if (grant) grant.lapsedMs = entry.atMs;
        return;
      }
      case "withdrawn":
        this.#withdrawn.push(entry);
        return;
      case "told": {
        const { process, atMs } = entry;
        for (const grant of this.#endedBy(entry)) {
          grant.toldMs.set(process, Math.min(toldMsOf(grant, process), atMs));
        }
        return;
      }
      case "stepped":
        this.#steps.push(entry);
        return;
      case "node":
        if (entry.what.startsWith("restarts")) this.#restarts.push(entry);
        return;
      case "forgot":
        this.#forgotMs.push(entry.atMs);
    }
  }
}
