export type { Grouping } from "../telemetry/groups.js";
export type { Subscription } from "../telemetry/subscription.js";
export type { MetricsOptions } from "./metrics.js";
export { startMetrics } from "./metrics.js";
export type { TracesOptions } from "./traces.js";
export { startTraces } from "./traces.js";
