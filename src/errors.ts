export { AcquireTimeoutError, type BlockedBy } from "./errors/acquire-timeout-error.js";
export { ClosedError, DeadlockError, UnsupportedError } from "./errors/call-errors.js";
export {
  aboutLock,
  type ErrorContext,
  type ErrorKind,
  HoldfastError,
  remade,
} from "./errors/holdfast-error.js";
export { InternalError } from "./errors/internal-error.js";
export { InvalidOptionError, invalidValue } from "./errors/invalid-option-error.js";
export {
  LeaseLostError,
  type LossContext,
  type LossReason,
  lostSoon,
  releasedBefore,
} from "./errors/lease-lost-error.js";
export { type Fenced, StaleTokenError } from "./errors/stale-token-error.js";
export {
  isFinal,
  type NodeVote,
  type Outcome,
  QuorumError,
  ReplicationError,
  StoreError,
} from "./errors/store-error.js";
