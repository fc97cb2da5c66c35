export type { ConformanceCase } from "./conformance.js";
export { conformance } from "./conformance.js";
export type { Command, Fault, Faults, FaultyStore, Harness, LateRequest } from "./harness.js";
