export type { Grouping } from "../groups.js";
export type { Subscription } from "../subscription.js";
export type { PrometheusOptions } from "./metrics.js";
export { startMetrics } from "./metrics.js";
