import { Counter, Gauge, Histogram, type Registry, register } from "prom-client";
import { UnsupportedError } from "../../errors/index.js";
import { knownOptions } from "../../options/known-options.js";
import { Collector } from "../collector.js";
import type { Grouping } from "../groups.js";
import { labelsOf, METRICS, type Metric } from "../metrics.js";
import { type Subscription, subscription } from "../subscription.js";

export type { Grouping } from "../groups.js";
export type { Subscription } from "../subscription.js";

/** Where the metrics go, and whether they tell groups of locks apart. */
export interface PrometheusOptions {
  /** The registry of `prom-client` that is scraped. Default: its global one. */
  readonly registry?: Registry | undefined;
  /**
   * The group of a lock by its name, as the label `group`. At most 1,000 groups; names beyond them
   * count as `other`. Default: metrics tell nothing of names.
   */
  readonly group?: Grouping | undefined;
}

const EXAMPLE = "must be an object: { registry, group }";

/**
 * Puts the metrics of all locks of this process into a registry of `prom-client`. Start it before
 * the first lock is asked for: leases and waits that are older are not in the gauges. `stop` takes
 * the metrics out of the registry.
 *
 * @example
 * import { register } from "prom-client";
 * import { startMetrics } from "holdfast/prometheus";
 *
 * startMetrics({ group: (name) => name.split(":")[0] ?? "" });
 * console.log(await register.metrics());
 */
export function startMetrics(options?: PrometheusOptions): Subscription {
  const { registry = register, group } = knownOptions(options, ["registry", "group"], EXAMPLE);
  // Older versions would never ask for the values: all series would stay empty.
  if (!("zero" in Histogram.prototype)) {
    throw new UnsupportedError("The metrics need prom-client 13.2 or later.");
  }
  const histograms = new Map<Metric, Histogram>();
  const collector = new Collector((metric, labels) => {
    const histogram = histograms.get(metric);
    histogram?.zero(labels);
    const series = histogram?.labels(labels);
    return (value) => series?.observe(value);
  }, group);
  const metrics = Object.values(METRICS);
  for (const metric of metrics) {
    const config = {
      name: promName(metric),
      help: metric.description,
      labelNames: labelsOf(metric, group !== undefined),
      registers: [registry],
    };
    if (metric.type === "histogram") {
      const buckets = [...(metric.bounds ?? [])];
      const collect = (): void => collector.countKept();
      histograms.set(metric, new Histogram({ ...config, buckets, collect }));
      continue;
    }
    const Kind = metric.type === "counter" ? Counter : Gauge;
    new Kind({
      ...config,
      collect() {
        this.reset();
        for (const { labels, value } of collector.series(metric)) this.inc(labels, value);
      },
    });
  }
  collector.start();
  return subscription(() => {
    collector.stop();
    for (const metric of metrics) registry.removeSingleMetric(promName(metric));
  });
}

/** The name that an exporter of OpenTelemetry gives to the metric, too. */
function promName({ name, type, unit }: Metric): string {
  const ending = type === "counter" ? "_total" : unit === "s" ? "_seconds" : "";
  return name.replaceAll(".", "_") + ending;
}
