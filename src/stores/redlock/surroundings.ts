import type { Claim } from "../../store.js";
import type { Port } from "../../time/port.js";
import type { RedlockNode } from "./redlock-node.js";
import type { SeenBallots } from "./seen-ballots.js";
import type { Failure, NodeRenewal, Vote } from "./vote.js";
import type { WakeUps } from "./wake-ups.js";

/** What an acquisition works with. */
export interface Surroundings {
  readonly port: Port;
  readonly nodes: readonly RedlockNode[];
  /** What the set of nodes goes by. */
  readonly setId: string;
  readonly driftFactor: number;
  readonly seen: SeenBallots;
  readonly wakeUps: WakeUps;
  /** For so long a node is kept for the waiter that it woke. */
  readonly reserveMs: number;
  /** How long a node may take, for a lease of this length, after so many rounds of silence. */
  limitMs(ttlMs: number, failures: number): number;
  metaText(claim: Claim): string;
  /** Lets nodes that do not vote into the majority again, where that is due. */
  readmit(): Promise<unknown>;
  /** Whether a majority is known to know of leases of this length. */
  isAnnounced(ttlMs: number): boolean;
  /** Announces leases of this length; true when a majority knows. */
  announce(ttlMs: number): Promise<boolean>;
  /** Enough nodes vote that somebody is granted, or was. */
  onMajority(): void;
  /** Every vote, early or late. */
  onVote(vote: Vote | NodeRenewal | Failure): void;
  /** Gives back on all nodes what this owner may have taken up to this ballot. */
  withdraw(withdrawal: Withdrawal): void;
}

export interface Withdrawal {
  readonly keys: readonly string[];
  readonly owner: string;
  readonly ballot: number;
  readonly ttlMs: number;
  /** Who goes on waiting; "" when nobody does. */
  readonly waiter: string;
  readonly since: string;
}
