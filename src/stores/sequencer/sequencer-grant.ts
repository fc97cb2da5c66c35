import type { Claim, Grant } from "../../store.js";
import type { OwnEntry, Watch } from "./sequencer.js";
import type { Session } from "./session.js";

/** A grant stands for an entry that holds; it lives as long as the session of the entry. */
export class SequencerGrant implements Grant {
  readonly type = "granted";
  readonly claim: Claim;
  readonly entry: OwnEntry;
  readonly token: bigint;
  readonly span = 1;
  deadlineMs: number;
  home: Session;
  /**
   * The session that the entry is being moved to: it is not known yet which of the two it is in.
   */
  nextHome: Session | null = null;
  /** Whether the store was ever asked to bind the entry to `nextHome`. */
  hasMoved = false;
  /** Its entry leaves, or has left: it must not move any more. */
  isGivenBack = false;
  /** On its own entry: whoever takes it away is noticed. */
  watch: Watch | null = null;

  constructor(entry: OwnEntry, home: Session) {
    this.claim = entry.claim;
    this.entry = entry;
    this.token = entry.order;
    this.home = home;
    this.deadlineMs = home.deadlineMs;
  }

  get locator(): string {
    return `${this.home.link.id}/${this.entry.id}`;
  }

  /** A renewal never shortens. */
  extend(deadlineMs: number): void {
    this.deadlineMs = Math.max(this.deadlineMs, deadlineMs);
  }
}
