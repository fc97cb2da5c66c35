/**
 * Turns the events of all locks of this process into series of metrics. It knows no package of
 * metrics: adapters read its counters and gauges, and are given the values of histograms.
 *
 * A gauge must never drift. So an end counts only where this collector saw the beginning: calls and
 * leases that began before it started are not in the gauges, neither when they begin nor when they
 * end. A beginning is remembered with its series, because `group` may answer otherwise later. Each
 * lease has one `held` event, published before all its other events, and one end; a lease that was
 * detached has ended here, whatever this process does with it later.
 *
 * A subscriber only keeps the event. The kept events are counted together, when the metrics are
 * read or when there are many: measured on Redis, that costs less than counting them one by one.
 */

import {
  type Channel,
  channel,
  type TracingChannel,
  tracingChannel,
} from "node:diagnostics_channel";
import {
  type AcquireEvent,
  channels,
  type DetachedEvent,
  type LeaseEvent,
  type LostEvent,
  type ReleaseEvent,
  type RenewEvent,
  type RevokedEvent,
} from "../events/events.js";
import { type Grouping, Groups } from "./groups.js";
import { METRICS, type Metric } from "./metrics.js";
import {
  type HistogramOpener,
  type LabelledValue,
  LabelledValues,
  SeriesFamily,
} from "./series-family.js";

const NO_KIND = "";

type Listener = readonly [Channel, (event: unknown) => void];

export class Collector {
  readonly #all: LabelledValues;
  readonly #groups: Groups | null;
  /** By store, kind and group. */
  readonly #families = new Map<string, Map<string, Map<string, SeriesFamily>>>();
  readonly #pending = new Map<AcquireEvent, SeriesFamily>();
  readonly #held = new HeldLeases();
  readonly #kept = new KeptEvents();
  readonly #listeners: readonly Listener[];

  constructor(openHistogram: HistogramOpener, group: Grouping | undefined) {
    this.#all = new LabelledValues(openHistogram);
    this.#groups = group ? new Groups(group) : null;
    const acquire: TracingChannel<unknown, AcquireEvent> = tracingChannel(channels.acquire);
    const counts: readonly Listener[] = [
      [acquire.start, (event) => this.#onAsk(event as AcquireEvent)],
      [acquire.asyncEnd, (event) => this.#onAnswer(event as AcquireEvent)],
      [channel(channels.held), (event) => this.#onHeld(event as LeaseEvent)],
      [channel(channels.renew), (event) => this.#onRenewal(event as RenewEvent)],
      [channel(channels.release), (event) => this.#onRelease(event as ReleaseEvent)],
      [channel(channels.lost), (event) => this.#onLost(event as LostEvent)],
      [channel(channels.detached), (event) => this.#onEnd(event as DetachedEvent, "detached")],
      [channel(channels.handoff), (event) => this.#count(METRICS.handoffs, event as LeaseEvent)],
      [channel(channels.revoked), (event) => this.#onRevoked(event as RevokedEvent)],
    ];
    this.#listeners = counts.map(([of, count]) => {
      return [of, (event) => this.#kept.keep(event, count)];
    });
  }

  start(): void {
    for (const [of, listener] of this.#listeners) of.subscribe(listener);
  }

  stop(): void {
    for (const [of, listener] of this.#listeners) of.unsubscribe(listener);
    this.countKept();
  }

  /** Hands the values of histograms on, up to this moment. */
  countKept(): void {
    this.#kept.countAll();
  }

  /** The series of a counter or a gauge, with their present values. */
  series(metric: Metric): Iterable<LabelledValue> {
    this.countKept();
    return this.#all.of(metric);
  }

  #onAsk(event: AcquireEvent): void {
    const family = this.#familyOf(event);
    this.#pending.set(event, family);
    family.add(METRICS.acquiresPending, 1);
  }

  /** The time of a call is known, even if its beginning was not seen. */
  #onAnswer(event: AcquireEvent): void {
    const begun = this.#pending.get(event);
    this.#pending.delete(event);
    begun?.add(METRICS.acquiresPending, -1);
    const { waitedMs = 0, outcome } = event;
    const family = begun ?? this.#familyOf(event);
    family.add(METRICS.acquireDuration, waitedMs / 1_000, outcome);
  }

  #onHeld(event: LeaseEvent): void {
    const family = this.#familyOf(event);
    this.#held.add(event, family);
    family.add(METRICS.leasesHeld, 1);
  }

  #onEnd(event: LeaseEvent & { readonly heldMs: number }, outcome: string): void {
    const family = this.#held.remove(event);
    if (!family) return;
    family.add(METRICS.leasesHeld, -1);
    family.add(METRICS.holdDuration, event.heldMs / 1_000, outcome);
  }

  #onRelease(event: ReleaseEvent): void {
    this.#onEnd(event, event.outcome);
    // The release was the first to hear of the loss: there is no other event of it.
    if (event.outcome === "lost") this.#count(METRICS.leasesLost, event, "missing");
  }

  #onLost(event: LostEvent): void {
    this.#onEnd(event, "lost");
    this.#count(METRICS.leasesLost, event, event.reason);
  }

  #onRenewal(event: RenewEvent): void {
    const { outcome, spareMs, ttlMs } = event;
    this.#count(METRICS.renewals, event, outcome);
    if (outcome !== "renewed") return;
    const ratio = Math.min(Math.max(spareMs / ttlMs, 0), 1);
    this.#familyOf(event).add(METRICS.remainingRatio, ratio);
  }

  #onRevoked({ store, name }: RevokedEvent): void {
    this.#family(store, NO_KIND, this.#groupOf(name)).add(METRICS.revocations, 1);
  }

  #count(metric: Metric, event: LeaseEvent, value?: string): void {
    this.#familyOf(event).add(metric, 1, value);
  }

  #familyOf({ store, kind, name }: LeaseEvent | AcquireEvent): SeriesFamily {
    return this.#family(store, kind, this.#groupOf(name));
  }

  #groupOf(name: string): string {
    return this.#groups?.of(name) ?? "";
  }

  #family(store: string, kind: string, group: string): SeriesFamily {
    return this.#families.get(store)?.get(kind)?.get(group) ?? this.#open(store, kind, group);
  }

  #open(store: string, kind: string, group: string): SeriesFamily {
    const kinds = this.#families.get(store) ?? new Map<string, Map<string, SeriesFamily>>();
    this.#families.set(store, kinds);
    const groups = kinds.get(kind) ?? new Map<string, SeriesFamily>();
    kinds.set(kind, groups);
    const family = new SeriesFamily(this.#all, {
      store,
      ...(kind === NO_KIND ? {} : { kind }),
      ...(this.#groups ? { group } : {}),
    });
    groups.set(group, family);
    // A revocation names no kind.
    if (kind !== NO_KIND) this.#family(store, NO_KIND, group);
    return family;
  }
}

/** So many events are counted in about a millisecond. */
const MAX_KEPT = 1_024;

type Count = (event: unknown) => void;

/** Events that are kept as they come, and counted together. */
class KeptEvents {
  #events: unknown[] = [];
  #counts: Count[] = [];

  keep(event: unknown, count: Count): void {
    this.#events.push(event);
    this.#counts.push(count);
    if (this.#events.length >= MAX_KEPT) this.countAll();
  }

  countAll(): void {
    const [events, counts] = [this.#events, this.#counts];
    // A function of the user that is called below may use locks, too.
    this.#events = [];
    this.#counts = [];
    events.forEach((event, index) => {
      counts[index]?.(event);
    });
  }
}

interface HeldLease {
  readonly event: LeaseEvent;
  readonly family: SeriesFamily;
  /** Another lease with the same token. */
  next: HeldLease | undefined;
}

/**
 * The leases that began and did not end yet, each with its series. A token tells apart the leases
 * of one name only, but a key of token and name would be a new text forevery event.
 */
class HeldLeases {
  readonly #byToken = new Map<bigint, HeldLease>();

  add(event: LeaseEvent, family: SeriesFamily): void {
    const next = this.#byToken.get(event.token);
    this.#byToken.set(event.token, { event, family, next });
  }

  /** The series of the lease that this event is about; undefined if its start was not seen. */
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
