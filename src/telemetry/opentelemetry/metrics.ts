import { type Histogram, type MeterProvider, metrics } from "@opentelemetry/api";
import { knownOptions } from "../../options/known-options.js";
import { Collector } from "../collector.js";
import type { Grouping } from "../groups.js";
import { METRICS, type Metric } from "../metrics.js";
import { type Subscription, subscription } from "../subscription.js";

/** Where the metrics go, and whether they tell groups of locks apart. */
export interface MetricsOptions {
  /** The provider of the meter. Default: the global one, which the SDK sets. */
  readonly meterProvider?: MeterProvider | undefined;
  /**
   * The group of a lock by its name, as the attribute `group`. At most 1,000 groups; names beyond
   * them count as `other`. Default: metrics tell nothing of names.
   */
  readonly group?: Grouping | undefined;
}

const EXAMPLE = "must be an object: { meterProvider, group }";

/**
 * Measures all locks of this process by OpenTelemetry. Start it after the SDK, and before the first
 * lock is asked for: leases and waits that are older are not in the gauges.
 *
 * @example
 * import { startMetrics } from "holdfast/opentelemetry";
 *
 * startMetrics({ group: (name) => name.split(":")[0] ?? "" });
 */
export function startMetrics(options?: MetricsOptions): Subscription {
  const known = knownOptions(options, ["meterProvider", "group"], EXAMPLE);
  const { meterProvider = metrics, group } = known;
  const meter = meterProvider.getMeter("holdfast");
  const histograms = new Map<Metric, Histogram>();
  const collector = new Collector((metric, labels) => {
    const histogram = histograms.get(metric);
    return (value) => histogram?.record(value, labels);
  }, group);
  const removals: (() => void)[] = [];
  for (const metric of Object.values(METRICS)) {
    const { name, type, unit, description, bounds } = metric;
    const about = { unit, description };
    if (type === "histogram") {
      const advice = { explicitBucketBoundaries: [...(bounds ?? [])] };
      histograms.set(metric, meter.createHistogram(name, { ...about, advice }));
      continue;
    }
    const instrument =
      type === "counter"
        ? meter.createObservableCounter(name, about)
        : meter.createObservableUpDownCounter(name, about);
    const observe: Parameters<typeof instrument.addCallback>[0] = (result) => {
      for (const { labels, value } of collector.series(metric)) result.observe(value, labels);
    };
    instrument.addCallback(observe);
    removals.push(() => instrument.removeCallback(observe));
  }
  collector.start();
  return subscription(() => {
    collector.stop();
    for (const remove of removals) remove();
  });
}
