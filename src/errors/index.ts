export { AcquireTimeoutError, type BlockedBy } from "./acquire-timeout-error.js";
export { ClosedError, DeadlockError, UnsupportedError } from "./call-errors.js";
export {
  aboutLock,
  type ErrorContext,
  type ErrorKind,
  HoldfastError,
  remade,
} from "./holdfast-error.js";
export { InternalError } from "./internal-error.js";
export { InvalidOptionError, invalidValue } from "./invalid-option-error.js";
export {
  LeaseLostError,
  type LossContext,
  type LossReason,
  lostSoon,
  releasedBefore,
} from "./lease-lost-error.js";
export { type Fenced, StaleTokenError } from "./stale-token-error.js";
export {
  isFinal,
  type NodeVote,
  type Outcome,
  QuorumError,
  ReplicationError,
  StoreError,
} from "./store-error.js";
