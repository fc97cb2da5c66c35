import type { LeaseEvent } from "../events/events.js";
import type { SeriesFamily } from "./series-family.js";

interface HeldLease {
  readonly event: LeaseEvent;
  readonly family: SeriesFamily;
  /** Another lease with the same token. */
  next: HeldLease | undefined;
}

/**
 * The leases that began and did not end yet, each with its series. A token tells apart the leases
 * of one name only, but a key of token and name would be a new text for every event.
 */
export class HeldLeases {
  readonly #byToken = new Map<bigint, HeldLease>();

  add(event: LeaseEvent, family: SeriesFamily): void {
    const next = this.#byToken.get(event.token);
    this.#byToken.set(event.token, { event, family, next });
  }

  /** The series of the lease that this event is about; undefined where its beginning is unknown. */
  remove(event: LeaseEvent): SeriesFamily | undefined {
    let before: HeldLease | undefined;
    let held = this.#byToken.get(event.token);
    while (held && !isSame(held.event, event)) {
      before = held;
      held = held.next;
    }
    if (!held) return undefined;
    if (before) before.next = held.next;
    else if (held.next) this.#byToken.set(event.token, held.next);
    else this.#byToken.delete(event.token);
    return held.family;
  }
}

function isSame(a: LeaseEvent, b: LeaseEvent): boolean {
  return (
    a.name === b.name && a.space === b.space && a.store === b.store && a.namespace === b.namespace
  );
}
