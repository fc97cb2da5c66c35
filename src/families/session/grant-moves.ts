/**
 * Moves the entry of a grant to a session with a longer ttl when a renewal asks for one.
 *
 * The ttl of a session is fixed, but some stores can bind an entry to another session. From the
 * first request until an answer, the entry may be in either session, so neither session may end
 * before the deadline of the grant.
 */
import { assert } from "../../errors/assert.js";
import { StoreError } from "../../errors/index.js";
import type { EntryOwner, Session } from "./session.js";
import type { SessionGrant } from "./session-grant.js";
import type { Sessions } from "./sessions.js";

const CALL_MS = 1_500;

export class GrantMoves {
  readonly #sessions: Sessions;
  readonly #owner: EntryOwner;

  /** `owner` is notified if a session that a grant was moved to ends. */
  constructor(sessions: Sessions, owner: EntryOwner) {
    this.#sessions = sessions;
    this.#owner = owner;
  }

  /** Whether a renewal for `ttlMs` needs to move the grant and the store can move it. */
  mustMove({ home, move }: SessionGrant, ttlMs: number): boolean {
    if (move) return true;
    return ttlMs > home.ttlMs && home.storeSession.adopt !== undefined;
  }

  /** Starts or continues a move. Returns false if the entry is gone. */
  async move(grant: SessionGrant, ttlMs: number): Promise<boolean> {
    if (!grant.move) await this.#begin(grant, ttlMs);
    const { move } = grant;
    if (!move) return !grant.isReleasing;
    const { to } = move;
    if (to.deadlineMs < grant.deadlineMs) await to.renew(true);
    if (grant.isReleasing) return false;
    if (to.isOver && move.isSent) return false;
    if (to.isOver || to.deadlineMs < grant.deadlineMs) {
      if (to.isOver) grant.move = null;
      throw new StoreError("The session for the longer ttl is not ready.", {
        outcome: "not_applied",
      });
    }
    assert(
      to.storeSession.adopt !== undefined,
      "all sessions of a store can adopt an entry, or none can",
    );
    move.isSent = true;
    const isThere = await to.storeSession.adopt(grant.entry, CALL_MS);
    if (grant.move === move) this.#end(grant, to);
    return isThere;
  }

  async #begin(grant: SessionGrant, ttlMs: number): Promise<void> {
    const { entry, home } = grant;
    const to = await this.#sessions.for({ ttlMs, ownSession: home.isDedicated }, CALL_MS);
    // In the meantime the grant was released, or another renewal started to move it.
    if (grant.isReleasing || grant.move || grant.home !== home) {
      if (to.isDedicated) void to.close();
      return;
    }
    to.add(entry, this.#owner);
    to.hand();
    grant.move = { to, isSent: false };
  }

  #end(grant: SessionGrant, to: Session): void {
    const { home, entry } = grant;
    grant.home = to;
    grant.move = null;
    home.remove(entry);
    // The old session stopped taking entries during the move: end it with its last entry.
    if (!home.isOpen) home.retire();
  }
}
