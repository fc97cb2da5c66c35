/** The metrics of all locks of a process: their names, units and labels, and nothing else. */

/** A metric, as OpenTelemetry names it. */
export interface Metric {
  readonly name: string;
  readonly type: "histogram" | "counter" | "gauge";
  /** A unit of UCUM: seconds, a ratio, or the thing that is counted in braces. */
  readonly unit: "s" | "1" | `{${string}}`;
  readonly description: string;
  /** Whether it tells kinds of locks apart; all metrics tell stores apart. */
  readonly hasKind: boolean;
  /** The label that it has beside `store`, `kind` and `group`, and the values of that label. */
  readonly by?: { readonly label: string; readonly values: readonly string[] };
  /** The upper bounds of the buckets of a histogram. */
  readonly bounds?: readonly number[];
}

export type MetricName =
  | "acquireDuration"
  | "holdDuration"
  | "acquiresPending"
  | "leasesHeld"
  | "leasesLost"
  | "renewals"
  | "remainingRatio"
  | "handoffs"
  | "revocations";

/** From an uncontended lock in memory to a long wait. */
const SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];

/** A renewal is sent when two thirds are left. */
const RATIOS = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 1];

export const METRICS: Readonly<Record<MetricName, Metric>> = {
  acquireDuration: {
    name: "holdfast.acquire.duration",
    type: "histogram",
    unit: "s",
    description: "Time from the call that asks for a lock to its end.",
    hasKind: true,
    by: { label: "outcome", values: ["granted", "busy", "timeout", "aborted", "error"] },
    bounds: SECONDS,
  },
  holdDuration: {
    name: "holdfast.hold.duration",
    type: "histogram",
    unit: "s",
    description: "Time from the grant of a lease to its end.",
    hasKind: true,
    by: { label: "outcome", values: ["released", "lost", "failed", "detached"] },
    bounds: SECONDS,
  },
  acquiresPending: {
    name: "holdfast.acquires.pending",
    type: "gauge",
    unit: "{acquisition}",
    description: "Calls that ask for a lock now.",
    hasKind: true,
  },
  leasesHeld: {
    name: "holdfast.leases.held",
    type: "gauge",
    unit: "{lease}",
    description: "Leases that this process holds now.",
    hasKind: true,
  },
  leasesLost: {
    name: "holdfast.leases.lost",
    type: "counter",
    unit: "{lease}",
    description: "Leases that ended before they were released.",
    hasKind: true,
    by: {
      label: "reason",
      values: ["expired", "replaced", "missing", "revoked", "session_ended", "max_hold"],
    },
  },
  renewals: {
    name: "holdfast.renewals",
    type: "counter",
    unit: "{renewal}",
    description: "Renewals that the store answered, or did not.",
    hasKind: true,
    by: { label: "outcome", values: ["renewed", "failed"] },
  },
  remainingRatio: {
    name: "holdfast.renewal.remaining_ratio",
    type: "histogram",
    unit: "1",
    description: "Part of the ttl that was left when a renewal was answered; two thirds is best.",
    hasKind: true,
    bounds: RATIOS,
  },
  handoffs: {
    name: "holdfast.handoffs",
    type: "counter",
    unit: "{handoff}",
    description: "Leases that came straight from the holder before.",
    hasKind: true,
  },
  revocations: {
    name: "holdfast.revocations",
    type: "counter",
    unit: "{lease}",
    description: "Leases of any process that this process revoked.",
    hasKind: false,
  },
};

/** The labels of a metric, in a fixed order. */
export function labelsOf({ hasKind, by }: Metric, isGrouped: boolean): string[] {
  return [
    "store",
    ...(hasKind ? ["kind"] : []),
    ...(isGrouped ? ["group"] : []),
    ...(by ? [by.label] : []),
  ];
}
