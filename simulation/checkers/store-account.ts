import type { Entry, EntryOf } from "../history.js";

/** How much the clocks of the store and of a process may differ. */
export const CLOCK_TOLERANCE = 1.01;

/** The store granted, confirmed or renewed a grant, and promised it up to a time. */
interface Word {
  readonly atMs: number;
  readonly untilMs: number;
}

/** One grant as the store saw it. */
export interface GrantAccount {
  readonly granted: EntryOf<"granted">;
  /** In the order of time; the first one is the grant. */
  readonly words: Word[];
  revokedMs: number;
  /** The processes that the store told of its end, and when each of them knew. */
  readonly toldMs: Map<string, number>;
}

/** When a process knew from the store that the grant had ended. */
export function toldMsOf(grant: GrantAccount | undefined, process: string): number {
  return grant?.toldMs.get(process) ?? Number.POSITIVE_INFINITY;
}

function wordOf({ atMs, remainingMs }: EntryOf<"granted" | "extended">): Word {
  return { atMs, untilMs: atMs + remainingMs * CLOCK_TOLERANCE };
}

/** The last time up to `beforeMs` at which the store granted, confirmed or renewed a grant. */
export function lastWordMs(
  grant: GrantAccount | undefined,
  beforeMs: number = Number.POSITIVE_INFINITY,
): number {
  return grant?.words.findLast(({ atMs }) => atMs <= beforeMs)?.atMs ?? Number.NEGATIVE_INFINITY;
}

/** The grant was revoked up to `beforeMs`, and the store did not renew it after that. */
export function wasRevoked(grant: GrantAccount | undefined, beforeMs: number): boolean {
  if (!grant || grant.revokedMs > beforeMs) return false;
  return lastWordMs(grant, beforeMs) <= grant.revokedMs;
}

/**
 * The last time up to `beforeMs` at which the store promised a grant up to `untilMs`. If it never
 * did, nothing that happened before its last word explains a belief up to then.
 */
export function promisedMs(
  grant: GrantAccount | undefined,
  untilMs: number,
  beforeMs: number,
): number {
  const last = grant?.words.findLast((word) => word.atMs <= beforeMs && word.untilMs >= untilMs);
  return last?.atMs ?? lastWordMs(grant, beforeMs);
}

/** The grants of the store in a history, and the faults of the store. */
export class StoreAccount {
  readonly #grants = new Map<string, Map<bigint, GrantAccount[]>>();
  readonly #withdrawn: EntryOf<"withdrawn">[] = [];
  readonly #steps: EntryOf<"stepped">[] = [];
  readonly #forgotMs: number[] = [];
  readonly #restarts: EntryOf<"node">[] = [];
  readonly #renewedVotes: EntryOf<"vote renewed">[] = [];

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
    return this.#restarts.some((restart) => this.#endsVote(restart, owner, toMs));
  }

  /**
   * By how much the clock jumped ahead in all, which is how much earlier leases ended. If one node
   * of several jumps, only the votes that it gave before end early.
   */
  steppedAheadMs(fromMs: number, toMs: number, owner = ""): number {
    return this.#steps
      .filter((step) => {
        const { atMs, byMs, owners } = step;
        const isSince = owners ? this.#endsVote(step, owner, toMs) : atMs >= fromMs;
        return byMs > 0 && isSince && atMs <= toMs;
      })
      .reduce((sum, { byMs }) => sum + byMs, 0);
  }

  /** Whether a fault of a node ended its vote for an owner early, and it has not voted since. */
  #endsVote(
    { atMs, node, owners }: EntryOf<"stepped"> | EntryOf<"node">,
    owner: string,
    toMs: number,
  ): boolean {
    if (atMs > toMs || !owners?.includes(owner)) return false;
    return !this.#renewedVotes.some((vote) => {
      return vote.node === node && vote.owner === owner && vote.atMs > atMs && vote.atMs <= toMs;
    });
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
          words: [wordOf(entry)],
          revokedMs: Number.POSITIVE_INFINITY,
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
      case "extended": {
        this.#latest(entry.name, entry.token, entry.atMs)?.words.push(wordOf(entry));
        return;
      }
      case "revoked": {
        const grant = this.#latest(entry.name, entry.token, entry.atMs);
        if (grant) grant.revokedMs = entry.atMs;
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
      case "vote renewed":
        this.#renewedVotes.push(entry);
        return;
      case "node":
        if (entry.what.startsWith("restarts")) this.#restarts.push(entry);
        return;
      case "forgot":
        this.#forgotMs.push(entry.atMs);
    }
  }
}
