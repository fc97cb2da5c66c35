export { type ConnectOptions, connect } from "./api/connect.js";
export type { ReadWriteLock } from "./api/holdfast.js";
export { Holdfast } from "./api/holdfast.js";
export type { ListOptions, RevokeOptions } from "./api/inspection.js";
export type {
  Examination,
  ExamineOptions,
  FailureCase,
  Finding,
  Severity,
} from "./contract/examination.js";
export type { HolderView, LockView, MarkView, Meta, WaiterView } from "./contract/store.js";
export type {
  BlockedBy,
  ErrorContext,
  LossContext,
  LossReason,
  NodeVote,
  Outcome,
} from "./errors/index.js";
export {
  AcquireTimeoutError,
  ClosedError,
  DeadlockError,
  HoldfastError,
  InternalError,
  InvalidOptionError,
  LeaseLostError,
  QuorumError,
  ReplicationError,
  StoreError,
  UnsupportedError,
} from "./errors/index.js";
export type {
  AcquireEvent,
  DetachedEvent,
  ForeignEvent,
  HandoffEvent,
  LeaseEvent,
  LockEvent,
  LockKind,
  LostEvent,
  PollingEvent,
  ReleaseEvent,
  RenewEvent,
  RequestEvent,
  RevokedEvent,
  RunEvent,
  WarningEvent,
} from "./events/events.js";
export { channels } from "./events/events.js";
export type { Lease } from "./lease/lease.js";
export type { LeaseSet } from "./locks/all.js";
export type { Deadlock, DeadlockStep } from "./locks/deadlocks.js";
export type { Election, Leader, ObserveOptions } from "./locks/election.js";
export type { Lock, TryResult } from "./locks/lock.js";
export type { OnceBeginning, OnceOptions, OnceResult, OnceRun } from "./locks/once.js";
export type { AcquireOptions } from "./options/options.js";
export type { Mode } from "./rules/fits.js";
export type { Space } from "./rules/name.js";
