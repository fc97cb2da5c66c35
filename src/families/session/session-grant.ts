import { StoreGrant } from "../../contract/store-grant.js";
import type { Moment, OwnEntry, Watch } from "./sequencer.js";
import type { Session } from "./session.js";

/** The grant of an entry that holds the lock. It lasts as long as the session of the entry. */
export class SessionGrant extends StoreGrant {
  readonly entry: OwnEntry;
  readonly token: bigint;
  readonly span = 1;
  /** The session of the entry; during a move, the session it is moving from. */
  home: Session;
  move: GrantMove | null = null;
  /** Set when the grant is released or detached. The entry must not move after that. */
  isReleasing = false;
  /** The last known moment at which the entry was there. */
  seenAt: Moment;
  /** The watch on the entry; null until the grant has been held for a moment. */
  watch: Watch | null = null;

  constructor(entry: OwnEntry, home: Session, seenAt: Moment) {
    super(entry.claim, home.deadlineMs);
    this.entry = entry;
    this.token = entry.token;
    this.home = home;
    this.seenAt = seenAt;
  }

  get locator(): string {
    return this.home.storeSession.locatorOf(this.entry);
  }
}

/** A move of an entry to another session that the store has not confirmed yet. */
export interface GrantMove {
  readonly to: Session;
  /** The request was sent, so the entry may be in either session. */
  isSent: boolean;
}
