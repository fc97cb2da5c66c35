import { StoreGrant } from "../../contract/store-grant.js";
import type { Moment, OwnEntry, Watch } from "./sequencer.js";
import type { Session } from "./session.js";

/** A grant stands for an entry that holds; it lives as long as the session of the entry. */
export class SessionGrant extends StoreGrant {
  readonly entry: OwnEntry;
  readonly token: bigint;
  readonly span = 1;
  /** The session that the entry is in, unless it is moving. */
  home: Session;
  move: GrantMove | null = null;
  /** The grant was released or detached: the entry must not move any more. */
  isReleasing = false;
  /** The last known moment at which the entry was there. */
  seenAt: Moment;
  /** The watch on the entry, once the grant has been held for a moment. */
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

/** The move of an entry to another session, until it is certain that the entry is there. */
export interface GrantMove {
  readonly to: Session;
  /** The store was asked to move the entry: it may be in either session. */
  isSent: boolean;
}
