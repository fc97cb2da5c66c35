import { METRICS, type Metric } from "./metrics.js";

/** The labels of a series, by their names. */
export type Labels = Readonly<Record<string, string>>;

/** The values of one metric with the same labels. */
export interface LabelledValue {
  readonly labels: Labels;
  /** The sum of what was added. A histogram keeps its values elsewhere. */
  value: number;
  add(value: number): void;
}

/** Makes the series of histograms: an adapter hands their values on. */
export type HistogramOpener = (metric: Metric, labels: Labels) => (value: number) => void;

/** Every series of a process, by its metric. */
export class LabelledValues {
  readonly #openHistogram: HistogramOpener;
  readonly #byMetric = new Map<Metric, LabelledValue[]>();

  constructor(openHistogram: HistogramOpener) {
    this.#openHistogram = openHistogram;
  }

  of(metric: Metric): Iterable<LabelledValue> {
    return this.#byMetric.get(metric) ?? [];
  }

  open(metric: Metric, labels: Labels): LabelledValue {
    const series =
      metric.type === "histogram"
        ? { labels, value: 0, add: this.#openHistogram(metric, labels) }
        : new Sum(labels);
    const known = this.#byMetric.get(metric);
    if (known) known.push(series);
    else this.#byMetric.set(metric, [series]);
    return series;
  }
}

/** A counter or a gauge. */
class Sum implements LabelledValue {
  readonly labels: Labels;
  value = 0;

  constructor(labels: Labels) {
    this.labels = labels;
  }

  add(value: number): void {
    this.value += value;
  }
}

/**
 * The series of one store, one kind of lock and one group. All of them are there from the start: a
 * counter that first appears with the value 1 looks to Prometheus as if it had never risen.
 */
export class SeriesFamily {
  readonly #all: LabelledValues;
  readonly #labels: Labels;
  readonly #byMetric = new Map<Metric, Map<string, LabelledValue>>();

  constructor(all: LabelledValues, labels: Labels) {
    this.#all = all;
    this.#labels = labels;
    for (const metric of Object.values(METRICS)) {
      if (metric.hasKind !== "kind" in labels) continue;
      this.#byMetric.set(metric, new Map());
      for (const value of metric.by?.values ?? [""]) this.#open(metric, value);
    }
  }

  /** `value`: that of the metric's own label, where it has one. */
  add(metric: Metric, amount: number, value = ""): void {
    // Another version of Holdfast in this process may publish events with other fields.
    if (!Number.isFinite(amount)) return;
    (this.#byMetric.get(metric)?.get(value) ?? this.#open(metric, value)).add(amount);
  }

  #open(metric: Metric, value: string): LabelledValue {
    const own = metric.by ? { [metric.by.label]: value } : {};
    const series = this.#all.open(metric, Object.freeze({ ...this.#labels, ...own }));
    this.#byMetric.get(metric)?.set(value, series);
    return series;
  }
}
