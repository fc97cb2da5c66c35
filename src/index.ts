export { connect } from "./connect.js";
export type { BlockedBy, ErrorContext, LossReason, NodeVote, Outcome } from "./errors.js";
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
} from "./errors.js";
export type {
  AcquireEvent,
  ForeignEvent,
  HandoffEvent,
  LeaseEvent,
  LockEvent,
  LockKind,
  LostEvent,
  ReleaseEvent,
  RenewEvent,
  RequestEvent,
  RevokedEvent,
  RunEvent,
} from "./events.js";
export { channels } from "./events.js";
export type { ListOptions, ReadWriteLock, RevokeOptions } from "./holdfast.js";
export { Holdfast } from "./holdfast.js";
export type { Lease } from "./lease/lease.js";
export type { LeaseSet } from "./locks/all.js";
export type { Deadlock, DeadlockStep } from "./locks/deadlocks.js";
export type { Election, Leader, ObserveOptions } from "./locks/election.js";
export type { Lock, TryResult } from "./locks/lock.js";
export type { OnceBeginning, OnceOptions, OnceResult, OnceRun } from "./locks/once.js";
export type { AcquireOptions } from "./options.js";
export type { Mode } from "./rules/fits.js";
export type { Space } from "./rules/name.js";
export type {
  Busy,
  Claim,
  GoneEvent,
  Grant,
  HolderView,
  LockView,
  MarkView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
  WaiterView,
} from "./store.js";
export type { Clock } from "./time/clock.js";
export { localPort, networkPort, type Port } from "./time/port.js";
export type { Random } from "./time/random.js";
export type { Timer, Timers } from "./time/timers.js";
