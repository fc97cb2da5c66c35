/**
 * `holdfast/store`: the names that an author of a store uses. A store implements `Store` itself, or
 * it implements `Arbiter` or `Sequencer`, and a family makes the store out of that.
 */
import type { Store } from "../contract/store.js";
import type { Arbiter } from "./ledger/arbiter.js";
import type { ArbiterOptions } from "./ledger/arbiter-client.js";
import { LedgerStore } from "./ledger/ledger-store.js";
import type { Sequencer } from "./session/sequencer.js";
import { SessionStore } from "./session/session-store.js";

export type {
  Examination,
  ExamineRequest,
  FailureCase,
  Finding,
  Severity,
} from "../contract/examination.js";
export type {
  AcquireResult,
  Busy,
  Claim,
  Grant,
  GrantListener,
  HolderView,
  LockView,
  Loss,
  MarkView,
  Meta,
  Renewal,
  RenewalReport,
  RenewalTerms,
  Renewer,
  Store,
  Traits,
  Wait,
  WaiterView,
} from "../contract/store.js";
export { StoreGrant } from "../contract/store-grant.js";
export type { LossReason } from "../errors/index.js";
export type { Mode, Occupancy, Request } from "../rules/fits.js";
export { apply } from "../rules/ledger.js";
export type {
  Command,
  Emit,
  Instant,
  Push,
  PushedGrant,
  Reply,
  View,
} from "../rules/ledger-command.js";
export type {
  Holder,
  LedgerState,
  Mark,
  Tombstone,
  Waiter,
  WaitingClient,
} from "../rules/ledger-state.js";
export { deadlineOf } from "../rules/margin.js";
export { keyOf, type Space, splitKey } from "../rules/name.js";
export { Upkeep } from "../rules/upkeep.js";
export type { Clock } from "../time/clock.js";
export type { Random } from "../time/random.js";
export { localRuntime, networkRuntime, type Runtime } from "../time/runtime.js";
export type { Timer, Timers } from "../time/timers.js";
export type { Arbiter, Execution } from "./ledger/arbiter.js";
export type { ArbiterOptions } from "./ledger/arbiter-client.js";
export {
  type EntryText,
  readEntryText,
  readMarkToken,
  revokedText,
} from "./session/entry-text.js";
export type {
  EnterCase,
  Entering,
  Entry,
  LeaveOptions,
  Leaving,
  ListedMark,
  Listing,
  LockId,
  Moment,
  Obstacle,
  OwnChange,
  OwnEntry,
  Proof,
  QueueChange,
  QueueWatch,
  Resumed,
  Sequencer,
  StoreSession,
  Watch,
} from "./session/sequencer.js";

/**
 * The store over an arbiter: the queue, handoffs, batches, repeated requests and the arithmetic of
 * clocks come with it.
 */
export function arbiterStore(arbiter: Arbiter, options?: ArbiterOptions): Store {
  return new LedgerStore(arbiter, options);
}

/** The store over a sequencer: sessions, watches, repeated requests and deadlines come with it. */
export function sequencerStore(sequencer: Sequencer): Store {
  return new SessionStore(sequencer);
}
