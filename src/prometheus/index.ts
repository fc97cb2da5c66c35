export type { Grouping } from "../telemetry/groups.js";
export type { Subscription } from "../telemetry/subscription.js";
export type { PrometheusOptions } from "./metrics.js";
export { startMetrics } from "./metrics.js";
