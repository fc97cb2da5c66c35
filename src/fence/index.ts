/**
 * Fences: whatever is written to remembers the highest token, and refuses a lower one. A process
 * that was stopped between its last check and its write is refused there, and nowhere else.
 */
export { type Fenced, StaleTokenError } from "../errors/index.js";
export {
  fencedFetch,
  fenceHeaders,
  type HandlesRequest,
  type HighestTokens,
  HttpFence,
  type HttpFenceOptions,
  httpFence,
} from "./http.js";
export { type GuardedScript, redisFence } from "./redis.js";
export { assertWritten, postgresFence, type RunsStatement } from "./sql.js";
