/**
 * Watches the entry of each grant of this process, to notice a revoke or a deletion by another
 * program.
 *
 * The watch starts only after the grant has been held for `SETTLE_MS`, because short holds are not
 * worth one. It still misses nothing: it reports every change since the entry was last seen.
 */

import type { LossReason } from "../../errors/index.js";
import type { Timer } from "../../time/timers.js";
import type { HeldEntries } from "./held-entries.js";
import type { Queues } from "./queues.js";
import type { LockId, OwnChange, OwnEntry, Sequencer } from "./sequencer.js";
import type { EntryOwner, Session } from "./session.js";
import type { SessionGrant } from "./session-grant.js";
import { isIn, isSame } from "./standing.js";

/** A watch starts between one and two times this long after the grant. */
export const SETTLE_MS = 50;
const RETRY_MS = 1_000;
const CALL_MS = 1_500;

export class GrantWatches implements EntryOwner {
  readonly #sequencer: Sequencer;
  readonly #queues: Queues;
  readonly #held: HeldEntries;
  readonly #grants = new Map<OwnEntry, SessionGrant>();
  /** The grants to watch when the timer fires, and those to watch when it fires again. */
  #due: Set<SessionGrant> = new Set();
  #next: Set<SessionGrant> = new Set();
  #settling: Timer | undefined;

  constructor(sequencer: Sequencer, queues: Queues, held: HeldEntries) {
    this.#sequencer = sequencer;
    this.#queues = queues;
    this.#held = held;
  }

  take(grant: SessionGrant): void {
    const { entry, home } = grant;
    home.add(entry, this);
    this.#grants.set(entry, grant);
    this.#held.add(entry.lock, entry.id);
    this.#settleLater(grant);
  }

  /** Drops a grant whose entry may stay in the queue, so that local waiters watch the entry. */
  giveUp(grant: SessionGrant): void {
    this.drop(grant);
    // rule: end-of-a-lease-is-told-here
    this.#queues.at(grant.entry.lock)?.look();
  }

  /** Stops watching a grant that is released, detached or lost. */
  drop(grant: SessionGrant): void {
    const { entry } = grant;
    this.#grants.delete(entry);
    this.#held.delete(entry.lock, entry.id);
    this.#due.delete(grant);
    this.#next.delete(grant);
    grant.watch?.close();
    grant.watch = null;
  }

  /** During a move the entry may be in either session, so the loss of either ends the grant. */
  onSessionLost(entry: OwnEntry, session: Session, reason: LossReason): void {
    const grant = this.#grants.get(entry);
    if (!grant) return;
    const { home, move } = grant;
    const mayBeIn = home === session || (move?.isSent === true && move.to === session);
    if (mayBeIn) this.lose(grant, reason, "");
  }

  onMissing(entry: OwnEntry): void {
    const grant = this.#grants.get(entry);
    if (grant) this.lose(grant, "missing", "");
  }

  /** Ends the grant with this token, which this client has revoked. */
  onRevoked(lock: LockId, token: bigint, reason: string): void {
    for (const grant of [...this.#grants.values()]) {
      if (isIn(lock, grant.entry) && grant.token === token) this.lose(grant, "revoked", reason);
    }
  }

  /** Ends a grant that is gone from the store. */
  lose(grant: SessionGrant, reason: LossReason, detail: string): void {
    if (this.#isLive(grant)) this.giveUp(grant);
    grant.end({ reason, detail });
  }

  close(): void {
    this.#settling?.cancel();
    for (const grant of this.#grants.values()) grant.watch?.close();
  }

  #settleLater(grant: SessionGrant): void {
    this.#next.add(grant);
    this.#settling ??= this.#sequencer.runtime.timers.after(SETTLE_MS, () => this.#settle());
  }

  #settle(): void {
    this.#settling = undefined;
    for (const grant of this.#due) this.#watch(grant);
    this.#due = this.#next;
    this.#next = new Set();
    if (this.#due.size === 0) return;
    this.#settling = this.#sequencer.runtime.timers.after(SETTLE_MS, () => this.#settle());
  }

  #watch(grant: SessionGrant): void {
    grant.watch = this.#sequencer.watchOwn(grant.entry, grant.seenAt, (change) => {
      if (this.#isLive(grant)) this.#onChange(grant, change);
    });
  }

  #onChange(grant: SessionGrant, change: OwnChange): void {
    if (change.type === "broken") void this.#watchAgain(grant);
    else if (change.revoked !== null) this.lose(grant, "revoked", change.revoked);
    else {
      this.lose(grant, "missing", "");
      // The whole session may have ended. Renew it now, so that its other entries find out.
      grant.home.renew(true).catch(() => {});
    }
  }

  async #watchAgain(grant: SessionGrant): Promise<void> {
    grant.watch = null;
    const { entry } = grant;
    try {
      const { moment, entries } = await this.#sequencer.list(entry.lock, "plain", CALL_MS);
      if (!this.#isLive(grant)) return;
      // A listing older than the last sight of the entry does not show whether it is still there.
      if (!moment.isBefore(grant.seenAt)) {
        const isThere = entries.some((one) => isSame(one, entry));
        if (!isThere) return this.lose(grant, "missing", "");
        grant.seenAt = moment;
      }
      this.#watch(grant);
    } catch {
      // Retry later. In the meantime, renewals check the entry too.
      this.#sequencer.runtime.timers.after(RETRY_MS, () => {
        if (this.#isLive(grant)) this.#settleLater(grant);
      });
    }
  }

  #isLive(grant: SessionGrant): boolean {
    return this.#grants.get(grant.entry) === grant;
  }
}
