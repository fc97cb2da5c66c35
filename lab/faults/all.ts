import type { Fault } from "./fault.js";
import * as holders from "./holders.js";
import * as messages from "./messages.js";
import * as servers from "./servers.js";
import * as waiters from "./waiters.js";

/** In the order of the rungs that they break. */
const all: readonly Fault[] = [
  holders.killedHolder,
  holders.killedInAcquire,
  messages.lateRelease,
  messages.lostReply,
  holders.longWork,
  messages.slowRenewals,
  holders.blockedLoop,
  holders.stoppedHolder,
  servers.failover,
  servers.waitElsewhere,
  servers.otherReplica,
  servers.restartsEmpty,
  servers.clockJump,
  messages.lateCopy,
  holders.stoppedAfterCheck,
  waiters.farWaiter,
];

export const faults: readonly Fault[] = all.map((fault) => ({
  ...fault,
  exempts(subject) {
    const isTried = subject.faults?.includes(fault.id) ?? true;
    return isTried ? (fault.exempts?.(subject) ?? null) : "another rung shows it";
  },
}));
