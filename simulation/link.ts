import type { Store, Traits } from "../src/contract/store.js";
import type { Arbiter, Execution } from "../src/families/ledger/arbiter.js";
import { LedgerStore } from "../src/families/ledger/ledger-store.js";
import type { Command } from "../src/rules/ledger-command.js";
import { nameOf } from "./account.js";
import type { SimulatedProcess } from "./process.js";

/** How a program reaches the store, and the faults of that link. */
export interface Link {
  /** The store is in this very process. */
  readonly isLocal: boolean;
  /** Calls without an answer. */
  readonly callsUnderWay: number;
  /** The process is gone; the store notices it after a while, or never does (null). */
  abandon(noticedMs: number | null): void;
  /** No message gets through for a while, and neither side is told. */
  cut(forMs: number): void;
  /** Only one node hears the requests of this moment, where there are several. */
  isolate?(): void;
  /** The connections break. */
  reset(): void;
  /** The connections break as soon as a request is under way on them. */
  resetNext(): void;
  /** The real store, over this link. */
  openStore(offerMs: number | undefined): Store;
}

/** A link to one server that runs the ledger. */
export type ArbiterLink = Arbiter & Link;

export function storeOver(link: ArbiterLink, offerMs: number | undefined): Store {
  return new LedgerStore(link, offerMs === undefined ? {} : { offerMs });
}

/** The process reads in these replies which of its grants have ended. */
export function learnEnds(
  process: SimulatedProcess,
  commands: readonly Command[],
  { replies }: Execution,
  saidMs: number,
): void {
  for (const [at, command] of commands.entries()) {
    const reply = replies[at];
    if (!reply || !("type" in reply)) continue;
    const name = nameOf(command.key);
    const hasEnded = reply.type === "stale" && reply.reason === "ended";
    if ((reply.type === "gone" || hasEnded) && "owner" in command) {
      process.learn({ name, owner: command.owner, saidMs });
    }
    // The lease may be one of its own.
    if (reply.type === "revoked" && reply.done && command.type === "revoke") {
      process.learn({ name, token: BigInt(command.token) });
    }
  }
}

export const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 10,
};
