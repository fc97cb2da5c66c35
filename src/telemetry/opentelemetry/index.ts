export type { Grouping } from "../groups.js";
export type { Subscription } from "../subscription.js";
export type { MetricsOptions } from "./metrics.js";
export { startMetrics } from "./metrics.js";
export type { TracesOptions } from "./traces.js";
export { startTraces } from "./traces.js";
