export { type Dashboard, dashboard } from "./dashboard.js";
export type { DashboardOptions } from "./options.js";
export type { AuditLine } from "./revocation.js";
export { type ServedDashboard, type ServeOptions, serveDashboard } from "./serve.js";
export type { ShownLocks } from "./shown-locks.js";
