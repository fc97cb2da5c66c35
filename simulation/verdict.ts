/** Runs a seed and checks its history. */

import { MAX_RETRY_MS } from "../src/families/ledger/acquisition.js";
import { CALL_TIMEOUT_MS } from "../src/families/ledger/command-batcher.js";
import { SETTLE_MS } from "../src/families/session/grant-watches.js";
import { MAX_BACKSTOP_MS } from "../src/families/session/queue.js";
import { MAX_EXTENSIONS } from "../src/stores/redlock/quorum.js";
import { POLL_STEP_MS } from "../src/stores/redlock/release.js";
import { MAX_LOOK_MS } from "../src/stores/redlock/waiting.js";
import { checkBelief, checkToldEnds } from "./checkers/belief.js";
import { checkBoundedOvertaking } from "./checkers/bounded-overtaking.js";
import { checkConfirmation } from "./checkers/confirmation.js";
import { checkDoneOnce } from "./checkers/done-once.js";
import { checkExclusionByBelief, checkExclusionByProbes } from "./checkers/exclusion.js";
import { checkFifo } from "./checkers/fifo.js";
import { checkGhosts, checkLeftovers } from "./checkers/leftovers.js";
import { checkLostWakeUps, type WakeUpBound } from "./checkers/lost-wake-ups.js";
import { checkNeedlessLoss } from "./checkers/needless-loss.js";
import { checkOwnRules } from "./checkers/own-rules.js";
import { checkTokenOrder } from "./checkers/token-order.js";
import { checkRevocation, checkToldInTime } from "./checkers/told-in-time.js";
import type { Violation } from "./checkers/violation.js";
import type { Entry, History } from "./history.js";
import { isHealthy, isSteady, type Plan, type PlanOptions, planOf } from "./plan.js";
import { NODE_TIMEOUT_MS } from "./quorum/quorum-link.js";
import { Scenario } from "./scenario.js";
import { CATCH_UP_MS, EXPIRY_EVERY_MS } from "./sequencer/etcd-server.js";
import { FAIR, longestDelayMs } from "./weather.js";

export interface Verdict {
  readonly plan: Plan;
  readonly history: History;
  readonly violations: readonly Violation[];
  readonly steps: number;
}

export async function judge(seed: number, options: PlanOptions = {}): Promise<Verdict> {
  const plan = planOf(seed, options);
  const scenario = new Scenario(plan);
  const { history, world } = scenario;
  const surprises: Violation[] = [];
  const surprise = (error: unknown): void => {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const nowMs = world.nowMs;
    surprises.push({ checker: "no surprises", message, name: null, fromMs: nowMs, toMs: nowMs });
  };
  process.on("unhandledRejection", surprise);
  try {
    await scenario.run();
    // Node reports unhandled rejections in a turn of the real event loop.
    await new Promise((resolve) => setImmediate(resolve));
  } catch (error) {
    surprise(error);
  } finally {
    process.off("unhandledRejection", surprise);
  }
  return { plan, history, violations: [...surprises, ...check(plan, history)], steps: world.steps };
}

function check(plan: Plan, history: History): Violation[] {
  const entries = history.entries();
  if (plan.family === "quorum") return checkQuorum(plan, entries);
  return plan.family === "arbiter" ? checkArbiter(plan, entries) : checkSequencer(plan, entries);
}

/**
 * A release polls the nodes for 500 ms, then for 1,000 ms and so on, within its five seconds. The
 * fourth and last poll takes as long again where the event loop was blocked.
 */
const LAST_POLL_MS = 4 * POLL_STEP_MS;

/** A round of votes takes one node timeout, and as long again where the event loop was blocked. */
const NODES_ASKED_MS = (1 + MAX_EXTENSIONS) * NODE_TIMEOUT_MS;

/** The promises of every family, under every fault. */
function checkAlways(entries: readonly Entry[]): Violation[] {
  return [
    ...checkExclusionByBelief(entries),
    ...checkExclusionByProbes(entries),
    ...checkToldEnds(entries),
    ...checkTokenOrder(entries),
    ...checkBoundedOvertaking(entries),
    ...checkLeftovers(entries),
    ...checkOwnRules(entries),
  ];
}

/**
 * The quorum family promises no order among waiters, so the store's queue is not checked; nor when
 * a restarted node votes again, so a free lock may stay free while nodes restart. Under other
 * faults the votes of a round that failed stay for up to a lease, and rounds collide.
 */
function checkQuorum(plan: Plan, entries: readonly Entry[]): Violation[] {
  return [
    ...checkAlways(entries),
    ...(isSteady(plan) ? checkLostWakeUps(entries, quorumBound(plan)) : []),
    ...checkNeedlessLoss(entries, plan.weather.copies > 0),
    ...checkToldInTime(entries, { releaseMs: LAST_POLL_MS }),
  ];
}

/** The watch on a new lease begins late, and learns of earlier changes later still. */
const WATCH_MS = 2 * SETTLE_MS + CATCH_UP_MS;

/** A session is proven by way of the leader: four messages. */
const ZOOKEEPER_PROOF_MS = 4 * longestDelayMs(FAIR);

/**
 * A push or a watch may be lost or late on a faulty network, so a revocation is told within a bound
 * only where there are no faults: until then the holder goes on to its next renewal.
 */
function checkSequencer(plan: Plan, entries: readonly Entry[]): Violation[] {
  const delayMs = longestDelayMs(plan.weather);
  return [
    ...checkAlways(entries),
    ...checkBelief(entries),
    ...checkFifo(entries),
    ...checkLostWakeUps(entries, queueBound(plan)),
    ...checkToldInTime(entries),
    ...checkNeedlessLoss(
      entries,
      false,
      plan.family === "zookeeper" ? ZOOKEEPER_PROOF_MS : undefined,
    ),
    ...checkDoneOnce(entries),
    ...(isHealthy(plan) ? checkRevocation(entries, WATCH_MS + 4 * delayMs) : []),
    ...checkGhosts(entries),
  ];
}

/** As in the other family; and a confirm may be lost or late on a faulty network. */
function checkArbiter(plan: Plan, entries: readonly Entry[]): Violation[] {
  const hasStrays = plan.weather.copies > 0;
  const delayMs = longestDelayMs(plan.weather);
  return [
    ...checkAlways(entries),
    ...checkFifo(entries),
    ...checkLostWakeUps(entries, wakeUpBound(plan)),
    ...checkToldInTime(entries),
    ...checkNeedlessLoss(entries, hasStrays),
    ...checkDoneOnce(entries),
    ...(isHealthy(plan) ? checkConfirmation(entries, delayMs) : []),
    ...(isHealthy(plan) ? checkRevocation(entries, delayMs) : []),
    ...checkGhosts(entries, hasStrays),
  ];
}

/**
 * The sum of the delays of timers, batches and staggered waiters. In the bounds below, the six
 * messages are a release, an offer, its confirm and their answers; the parts that are added where
 * the network had faults are for requests of before that are sent again only after their timeout,
 * and for waiters of dead processes that the store has not noticed yet.
 */
const SLACK_MS = 250;

/**
 * How long a free queue may stay free: an entry stays for as long as the session of its process.
 */
function queueBound(plan: Plan): WakeUpBound {
  const ttlMs = Math.max(...plan.ttlsMs);
  const leaseMs = ttlMs * Math.max(1, ...plan.renewalParts) * (1 + 2 * plan.drift);
  const endMs = leaseMs * 0.01 + 6 * longestDelayMs(plan.weather) + EXPIRY_EVERY_MS + SLACK_MS;
  const blockMs = plan.blocks > 0 ? plan.programs * ttlMs * plan.freezeParts[1] : 0;
  const silentMs = leaseMs + EXPIRY_EVERY_MS + SLACK_MS;
  const waste = { offerMs: silentMs, leaseMs: silentMs, silentMs };
  if (isSteady(plan)) return { boundMs: endMs, blockMs, ...waste };
  const unheardMs = 2 * (CALL_TIMEOUT_MS + MAX_RETRY_MS) + MAX_BACKSTOP_MS;
  return { boundMs: endMs + 2 * leaseMs + unheardMs, blockMs, ...waste };
}

/**
 * How long a free lock of a quorum may stay free where no node restarts: a waiter that missed a
 * release looks by itself, and two that vote at once try again.
 */
function quorumBound(plan: Plan): WakeUpBound {
  const ttlMs = Math.max(...plan.ttlsMs);
  const leaseMs = ttlMs * Math.max(1, ...plan.renewalParts);
  const endMs = leaseMs * (0.02 + 2 * plan.drift) + 6 * longestDelayMs(plan.weather) + SLACK_MS;
  const blockMs = plan.blocks > 0 ? plan.programs * ttlMs * plan.freezeParts[1] : 0;
  const silentMs = leaseMs + SLACK_MS;
  const waste = { offerMs: silentMs, leaseMs: silentMs, silentMs };
  // A process that dies before it has counted its votes leaves them on the nodes.
  const votesMs = plan.profile === "crash" ? leaseMs : 0;
  return { boundMs: endMs + MAX_LOOK_MS + NODES_ASKED_MS + votesMs, blockMs, ...waste };
}

/** How long a free lock may stay free while a waiter is in its queue, after the last fault. */
function wakeUpBound(plan: Plan): WakeUpBound {
  const ttlMs = Math.max(...plan.ttlsMs);
  const offerMs = Math.min(ttlMs, plan.offerMs ?? Math.max(2_000, ttlMs / 6));
  const leaseMs = ttlMs * Math.max(1, ...plan.renewalParts);
  // The store ends a lease a little later than its holder stops believing in it.
  const endMs = leaseMs * (0.01 + 2 * plan.drift) + 6 * longestDelayMs(plan.weather) + SLACK_MS;
  // The process of the next waiter may be blocked, and so may that of the one after it.
  const blockMs = plan.blocks > 0 ? plan.programs * ttlMs * plan.freezeParts[1] : 0;
  const waste = {
    offerMs: offerMs + SLACK_MS,
    leaseMs: leaseMs + SLACK_MS,
    silentMs: 4 * offerMs + SLACK_MS,
  };
  if (isSteady(plan)) return { boundMs: endMs, blockMs, ...waste };
  const unheardMs = 2 * (CALL_TIMEOUT_MS + MAX_RETRY_MS);
  const ghostsMs = leaseMs + plan.programs * offerMs;
  return { boundMs: endMs + leaseMs + ghostsMs + offerMs + unheardMs, blockMs, ...waste };
}
