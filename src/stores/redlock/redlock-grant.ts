import type { Claim, Grant } from "../../store.js";
import { spanOf } from "./ballot.js";

/** Votes of a majority for one owner at one ballot, which is its first token. */
export class RedlockGrant implements Grant {
  readonly type = "granted";
  readonly span: number;
  readonly locator = null;
  readonly claim: Claim;
  readonly token: bigint;
  readonly keys: readonly string[];
  deadlineMs: number;
  isReleased = false;
  /** The nodes that told that it ended there, with the reason of who revoked it where known. */
  readonly lostAt: Map<number, string | null> = new Map();

  constructor(claim: Claim, keys: readonly string[], ballot: number, deadlineMs: number) {
    this.claim = claim;
    this.keys = keys;
    this.span = spanOf(claim);
    this.token = BigInt(ballot);
    this.deadlineMs = deadlineMs;
  }

  /** A renewal never shortens. */
  extend(deadlineMs: number): void {
    this.deadlineMs = Math.max(this.deadlineMs, deadlineMs);
  }
}
