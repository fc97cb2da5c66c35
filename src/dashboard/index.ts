export { type Dashboard, dashboard } from "./dashboard.js";
export type { DashboardOptions, ShownLocks } from "./options.js";
export type { AuditLine } from "./revocation.js";
export { type ServedDashboard, type ServeOptions, serveDashboard } from "./serve.js";
