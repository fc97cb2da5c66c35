import type { Behaviour } from "./behaviour.js";
import { abandonedWriter } from "./cases/abandoned-writer.js";
import { abortBefore } from "./cases/abort-before.js";
import { abortInFlight } from "./cases/abort-in-flight.js";
import { abortWaiting } from "./cases/abort-waiting.js";
import { allInOppositeOrders } from "./cases/all-in-opposite-orders.js";
import { allLost } from "./cases/all-lost.js";
import { allOrNothing } from "./cases/all-or-nothing.js";
import { blockedEventLoop } from "./cases/blocked-event-loop.js";
import { brieflyStopped } from "./cases/briefly-stopped.js";
import { brokenWait } from "./cases/broken-wait.js";
import { close } from "./cases/close.js";
import { closeTells } from "./cases/close-tells.js";
import { closed } from "./cases/closed.js";
import { closedClientExits } from "./cases/closed-client-exits.js";
import { cohort } from "./cases/cohort.js";
import { cohortTokens } from "./cases/cohort-tokens.js";
import { crashedReader } from "./cases/crashed-reader.js";
import { deletedQueue } from "./cases/deleted-queue.js";
import { deletedState } from "./cases/deleted-state.js";
import { deletedUnnoticed } from "./cases/deleted-unnoticed.js";
import { detachInFlight } from "./cases/detach-in-flight.js";
import { detachInRun } from "./cases/detach-in-run.js";
import { droppedWakeUp } from "./cases/dropped-wake-up.js";
import { electionAgain } from "./cases/election-again.js";
import { electionCrash } from "./cases/election-crash.js";
import { electionLead } from "./cases/election-lead.js";
import { electionObserve } from "./cases/election-observe.js";
import { exclusion } from "./cases/exclusion.js";
import { exclusionOfProcesses } from "./cases/exclusion-of-processes.js";
import { expiry } from "./cases/expiry.js";
import { fifo } from "./cases/fifo.js";
import { fixedLease } from "./cases/fixed-lease.js";
import { grace } from "./cases/grace.js";
import { graceRelease } from "./cases/grace-release.js";
import { handedLease } from "./cases/handed-lease.js";
import { heldLeaseExits } from "./cases/held-lease-exits.js";
import { inspect } from "./cases/inspect.js";
import { killedHolder } from "./cases/killed-holder.js";
import { killedWaiter } from "./cases/killed-waiter.js";
import { lateListener } from "./cases/late-listener.js";
import { lateRelease } from "./cases/late-release.js";
import { lateRenewal } from "./cases/late-renewal.js";
import { lateRequest } from "./cases/late-request.js";
import { leastTtl } from "./cases/least-ttl.js";
import { list } from "./cases/list.js";
import { longWait } from "./cases/long-wait.js";
import { lossInTime } from "./cases/loss-in-time.js";
import { lostAcquireReply } from "./cases/lost-acquire-reply.js";
import { lostReleaseReply } from "./cases/lost-release-reply.js";
import { lostTryReply } from "./cases/lost-try-reply.js";
import { maxHold } from "./cases/max-hold.js";
import { namesApart } from "./cases/names-apart.js";
import { namesRefused } from "./cases/names-refused.js";
import { namespacesApart } from "./cases/namespaces-apart.js";
import { noOvertaking } from "./cases/no-overtaking.js";
import { nothingLeft } from "./cases/nothing-left.js";
import { nothingLeftForLong } from "./cases/nothing-left-for-long.js";
import { onceDone } from "./cases/once-done.js";
import { onceFailed } from "./cases/once-failed.js";
import { onceForgotten } from "./cases/once-forgotten.js";
import { onceLost } from "./cases/once-lost.js";
import { oneName } from "./cases/one-name.js";
import { patientWait } from "./cases/patient-wait.js";
import { readersShare } from "./cases/readers-share.js";
import { reentry } from "./cases/reentry.js";
import { reentryOfReaders } from "./cases/reentry-of-readers.js";
import { releaseAfterLoss } from "./cases/release-after-loss.js";
import { releaseTwice } from "./cases/release-twice.js";
import { releaseTwiceInStore } from "./cases/release-twice-in-store.js";
import { renewal } from "./cases/renewal.js";
import { renewalByHand } from "./cases/renewal-by-hand.js";
import { renewalReplyLost } from "./cases/renewal-reply-lost.js";
import { renewalRetried } from "./cases/renewal-retried.js";
import { revoke } from "./cases/revoke.js";
import { revokeInProcess } from "./cases/revoke-in-process.js";
import { revokeReader } from "./cases/revoke-reader.js";
import { revokeTurn } from "./cases/revoke-turn.js";
import { run } from "./cases/run.js";
import { runAfterLoss } from "./cases/run-after-loss.js";
import { semaphoreCrash } from "./cases/semaphore-crash.js";
import { semaphoreLimit } from "./cases/semaphore-limit.js";
import { semaphoreLimits } from "./cases/semaphore-limits.js";
import { semaphoreWeights } from "./cases/semaphore-weights.js";
import { spacesApart } from "./cases/spaces-apart.js";
import { stoppedCrowd } from "./cases/stopped-crowd.js";
import { stoppedHolder } from "./cases/stopped-holder.js";
import { stoppedWaiter } from "./cases/stopped-waiter.js";
import { timeOut } from "./cases/time-out.js";
import { tokens } from "./cases/tokens.js";
import { transfer } from "./cases/transfer.js";
import { transferOfProcess } from "./cases/transfer-of-process.js";
import { transferRevoked } from "./cases/transfer-revoked.js";
import { transferWhileOpen } from "./cases/transfer-while-open.js";
import { tryAcquire } from "./cases/try-acquire.js";
import { unreachableAcquire } from "./cases/unreachable-acquire.js";
import { unreachableHolder } from "./cases/unreachable-holder.js";
import { unreachableRelease } from "./cases/unreachable-release.js";
import { unreachableTime } from "./cases/unreachable-time.js";
import { unreachableWaiting } from "./cases/unreachable-waiting.js";
import { wait } from "./cases/wait.js";
import { waitingStays } from "./cases/waiting-stays.js";
import { waitingWriter } from "./cases/waiting-writer.js";
import { wildSpan } from "./cases/wild-span.js";

/** All of them, from the simple to the intricate. */
export const behaviours: readonly Behaviour[] = [
  exclusion,
  exclusionOfProcesses,
  tryAcquire,
  wait,
  handedLease,
  patientWait,
  run,
  runAfterLoss,
  timeOut,
  abortBefore,
  abortWaiting,
  abortInFlight,
  releaseTwice,
  releaseTwiceInStore,
  expiry,
  releaseAfterLoss,
  lossInTime,
  lateListener,
  deletedState,
  deletedUnnoticed,
  deletedQueue,
  blockedEventLoop,
  renewal,
  renewalByHand,
  renewalRetried,
  renewalReplyLost,
  lostAcquireReply,
  lostTryReply,
  lostReleaseReply,
  lateRequest,
  lateRenewal,
  lateRelease,
  unreachableAcquire,
  unreachableTime,
  unreachableHolder,
  unreachableRelease,
  unreachableWaiting,
  brokenWait,
  tokens,
  reentry,
  reentryOfReaders,
  fifo,
  noOvertaking,
  longWait,
  killedWaiter,
  stoppedWaiter,
  stoppedCrowd,
  cohort,
  cohortTokens,
  wildSpan,
  droppedWakeUp,
  killedHolder,
  stoppedHolder,
  brieflyStopped,
  readersShare,
  waitingWriter,
  abandonedWriter,
  crashedReader,
  semaphoreLimit,
  semaphoreWeights,
  semaphoreLimits,
  semaphoreCrash,
  allOrNothing,
  allLost,
  allInOppositeOrders,
  namesApart,
  namesRefused,
  namespacesApart,
  oneName,
  spacesApart,
  close,
  closeTells,
  closed,
  electionLead,
  electionAgain,
  electionObserve,
  electionCrash,
  onceDone,
  onceFailed,
  onceLost,
  onceForgotten,
  inspect,
  list,
  revoke,
  revokeTurn,
  revokeReader,
  revokeInProcess,
  transfer,
  transferWhileOpen,
  transferOfProcess,
  detachInFlight,
  detachInRun,
  transferRevoked,
  grace,
  graceRelease,
  maxHold,
  fixedLease,
  leastTtl,
  heldLeaseExits,
  closedClientExits,
  waitingStays,
  nothingLeft,
  nothingLeftForLong,
];
