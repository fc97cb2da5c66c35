/**
 * The grants of this process, each with a watch on its own entry: whoever takes it away is noticed.
 *
 * Short holds are not worth a watch: it begins once a grant has been held for a moment. It begins
 * at the entry's own revision, so however late, nothing is missed.
 */
import type { LossReason } from "../../errors.js";
import { keyOf } from "../../rules/name.js";
import type { GoneEvent } from "../../store.js";
import type { Timer } from "../../time/timers.js";
import type { Line } from "./line.js";
import type { Change, OwnEntry, Place, Sequencer } from "./sequencer.js";
import type { SequencerGrant } from "./sequencer-grant.js";
import type { Session } from "./session.js";

/** It begins after this, and before twice this. */
const SETTLE_MS = 50;
const RETRY_MS = 1_000;
const CALL_MS = 1_500;

export class Custody {
  readonly #sequencer: Sequencer;
  readonly #lineOf: (place: Place) => Line | undefined;
  readonly #grants = new Map<OwnEntry, SequencerGrant>();
  readonly #heldIds = new Set<string>();
  /** Those to be watched when the time comes, and those for the time after. */
  #due: Set<SequencerGrant> = new Set();
  #next: Set<SequencerGrant> = new Set();
  #settling: Timer | undefined;
  onGone: (event: GoneEvent) => void = () => {};

  /** `lineOf`: the line of those who wait for the same name here, if there are any. */
  constructor(sequencer: Sequencer, lineOf: (place: Place) => Line | undefined) {
    this.#sequencer = sequencer;
    this.#lineOf = lineOf;
  }

  /** Whether the entry belongs to a lease of this process. */
  has(place: Place, id: string): boolean {
    return this.#heldIds.has(`${id}/${keyOf(place.space, place.name)}`);
  }

  take(grant: SequencerGrant): void {
    this.#grants.set(grant.entry, grant);
    const { id, place } = grant.entry;
    this.#heldIds.add(`${id}/${keyOf(place.space, place.name)}`);
    this.#settleLater(grant);
  }

  /** The lease is over, but its entry may stay a while: waiters have to watch it themselves. */
  giveUp(grant: SequencerGrant): void {
    this.drop(grant);
    // rule: end-of-a-lease-is-told-here
    this.#lineOf(grant.entry.place)?.look();
  }

  /** Its end is its owner's doing. */
  drop(grant: SequencerGrant): void {
    this.#grants.delete(grant.entry);
    const { id, place } = grant.entry;
    this.#heldIds.delete(`${id}/${keyOf(place.space, place.name)}`);
    this.#due.delete(grant);
    this.#next.delete(grant);
    grant.watch?.close();
    grant.watch = null;
  }

  /** Everything in the session ended with it. */
  dropAll(session: Session, reason: LossReason): void {
    for (const grant of [...this.#grants.values()]) {
      if (grant.home === session) this.#lose(grant, reason, "");
    }
  }

  close(): void {
    this.#settling?.cancel();
    for (const grant of this.#grants.values()) grant.watch?.close();
  }

  #settleLater(grant: SequencerGrant): void {
    this.#next.add(grant);
    this.#settling ??= this.#sequencer.port.timers.after(SETTLE_MS, () => this.#settle());
  }

  #settle(): void {
    this.#settling = undefined;
    for (const grant of this.#due) this.#attend(grant, grant.token);
    this.#due = this.#next;
    this.#next = new Set();
    if (this.#due.size === 0) return;
    this.#settling = this.#sequencer.port.timers.after(SETTLE_MS, () => this.#settle());
  }

  #attend(grant: SequencerGrant, from: bigint): void {
    const { place, id } = grant.entry;
    const what = { type: "own", id } as const;
    grant.watch = this.#sequencer.watch(place, what, from, (change) => {
      this.#onChange(grant, change);
    });
  }

  #onChange(grant: SequencerGrant, change: Change): void {
    // What happened before the watch began is no hurry here.
    if (!this.#isLive(grant) || change.type === "behind") return;
    if (change.type === "broken") void this.#lookAfter(grant);
    else if (change.revoked !== null) this.#lose(grant, "revoked", change.revoked);
    else if (change.type === "gone") {
      this.#lose(grant, "missing", "");
      // It may have ended with its session, and then it was not the only one.
      grant.home.renew(true).catch(() => {});
    }
  }

  /** Its watch broke: looks whether it is still there, and watches again. */
  async #lookAfter(grant: SequencerGrant): Promise<void> {
    grant.watch = null;
    try {
      const { at, entries } = await this.#sequencer.list(grant.entry.place, "plain", CALL_MS);
      if (!this.#isLive(grant)) return;
      const isThere = entries.some(({ id }) => id === grant.entry.id);
      if (isThere || at < grant.token) this.#attend(grant, at);
      else this.#lose(grant, "missing", "");
    } catch {
      // The next renewal looks, too; until then, watch again before long.
      this.#sequencer.port.timers.after(RETRY_MS, () => {
        if (this.#isLive(grant)) this.#settleLater(grant);
      });
    }
  }

  #isLive(grant: SequencerGrant): boolean {
    return this.#grants.get(grant.entry) === grant;
  }

  #lose(grant: SequencerGrant, reason: LossReason, detail: string): void {
    if (!this.#isLive(grant)) return;
    this.giveUp(grant);
    this.onGone({ type: "gone", grant, reason, detail });
  }
}
