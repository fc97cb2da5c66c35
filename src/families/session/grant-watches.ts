/**
 * The grants of this process, each with a watch on its own entry, so that a revoke or a deletion by
 * another program is noticed.
 *
 * A short hold is not worth a watch: the watch begins once a grant has been held for a moment. It
 * tells of everything since the entry was last seen, so nothing is missed, however late it begins.
 */

import type { LossReason } from "../../errors/index.js";
import type { Timer } from "../../time/timers.js";
import type { HeldEntries } from "./held-entries.js";
import type { Queues } from "./queues.js";
import type { LockId, OwnChange, OwnEntry, Sequencer } from "./sequencer.js";
import type { EntryOwner, Session } from "./session.js";
import type { SessionGrant } from "./session-grant.js";
import { isIn, isSame } from "./standing.js";

/** A watch begins after this time, and before twice this time. */
export const SETTLE_MS = 50;
const RETRY_MS = 1_000;
const CALL_MS = 1_500;

export class GrantWatches implements EntryOwner {
  readonly #sequencer: Sequencer;
  readonly #queues: Queues;
  readonly #held: HeldEntries;
  readonly #grants = new Map<OwnEntry, SessionGrant>();
  /** The grants whose watch begins when the timer fires, and those whose watch begins after it. */
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

  /** The lease is over, but its entry may stay a while: waiters have to watch it themselves. */
  giveUp(grant: SessionGrant): void {
    this.drop(grant);
    // rule: end-of-a-lease-is-told-here
    this.#queues.at(grant.entry.lock)?.look();
  }

  /** The owner of the grant ends it, or passes it on. */
  drop(grant: SessionGrant): void {
    const { entry } = grant;
    this.#grants.delete(entry);
    this.#held.delete(entry.lock, entry.id);
    this.#due.delete(grant);
    this.#next.delete(grant);
    grant.watch?.close();
    grant.watch = null;
  }

  /** While it is not known which of two sessions the entry is in, the end of either ends it. */
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

  /** This client has revoked the grant with this token. */
  onRevoked(lock: LockId, token: bigint, reason: string): void {
    for (const grant of [...this.#grants.values()]) {
      if (isIn(lock, grant.entry) && grant.token === token) this.lose(grant, "revoked", reason);
    }
  }

  /** The store has ended the grant. */
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
      // The entry may have ended with its session, together with other entries.
      grant.home.renew(true).catch(() => {});
    }
  }

  async #watchAgain(grant: SessionGrant): Promise<void> {
    grant.watch = null;
    const { entry } = grant;
    try {
      const { moment, entries } = await this.#sequencer.list(entry.lock, "plain", CALL_MS);
      if (!this.#isLive(grant)) return;
      // A listing from before the entry was seen shows nothing about the entry.
      if (!moment.isBefore(grant.seenAt)) {
        const isThere = entries.some((one) => isSame(one, entry));
        if (!isThere) return this.lose(grant, "missing", "");
        grant.seenAt = moment;
      }
      this.#watch(grant);
    } catch {
      // The next renewal checks the entry as well.
      this.#sequencer.runtime.timers.after(RETRY_MS, () => {
        if (this.#isLive(grant)) this.#settleLater(grant);
      });
    }
  }

  #isLive(grant: SessionGrant): boolean {
    return this.#grants.get(grant.entry) === grant;
  }
}
