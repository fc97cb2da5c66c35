import type { Mutant } from "./mutant.js";

const NODE = "stores/redlock/node-rules.js";
const BALLOT = "stores/redlock/ballot.js";
const ADMISSION = "stores/redlock/admission.js";
const ACQUISITION = "stores/redlock/acquisition.js";

/** In the quorum family: what a node, a proposer or the admission of nodes would do wrong. */
export const quorum: readonly Mutant[] = [
  {
    title: "quorum: a node votes below its ballot",
    file: NODE,
    find: "if (ballot <= stored) {",
    replace: "if (lock && ballot < stored) {",
  },
  {
    title: "quorum: the next ballot is a token of the one before",
    file: BALLOT,
    find: "return Math.ceil(Math.max(wallUs, highestSeen + 1) / BALLOT_SPAN) * BALLOT_SPAN;",
    replace: "return Math.max(wallUs, highestSeen + 1);",
  },
  {
    title: "quorum: votes for a lower ballot count",
    file: ACQUISITION,
    find: "const round = this.#vote(claim, ballot);",
    replace: `const round = this.#vote(claim, ballot);
            if (raises > 0) {
                for (const [at, vote] of this.lastAnswers.entries()) {
                    if (vote?.type === "granted") round.answers[at] = vote;
                }
            }
            this.lastAnswers = round.answers;`,
  },
  {
    title: "quorum: a vote takes what another holds",
    file: NODE,
    find: "if (lock && lock.owner !== owner) {",
    replace: "if (lock && lock.owner !== owner && ballot <= stored) {",
  },
  {
    title: "quorum: half of the nodes are enough",
    file: BALLOT,
    find: "return Math.floor(nodes / 2) + 1;",
    replace: "return Math.max(1, Math.floor(nodes / 2));",
  },
  {
    title: "quorum: a deadline counts from the answers",
    file: ACQUISITION,
    find: "deadlineOf(answers, sentMs, driftFactor)",
    replace: "deadlineOf(answers, port.clock.nowMs(), driftFactor)",
  },
  {
    title: "quorum: a renewal counts from its answers",
    file: "stores/redlock/renewals.js",
    find: "deadlineOf(poll.answers, poll.sentMs, ",
    replace: "deadlineOf(poll.answers, this.#around.port.clock.nowMs(), ",
  },
  {
    title: "quorum: a deadline is that of the node that keeps it longest",
    file: BALLOT,
    find: "return ends[majorityOf(votes.length) - 1] ??",
    replace: "return ends[0] ??",
  },
  {
    title: "quorum: a late grant is kept",
    file: ACQUISITION,
    find: "if (!isLate && !this.#isEnded) {",
    replace: "if (!this.#isEnded) {",
  },
  {
    title: "quorum: a failed round is not given back",
    file: ACQUISITION,
    find: "if (isTaken || raises > 0)",
    replace: "if (false)",
  },
  {
    title: "quorum: a renewal shortens",
    file: NODE,
    find: "const untilMs = Math.max(lock.untilMs, ms(nowUs) + ttlMs);",
    replace: "const untilMs = ms(nowUs) + ttlMs;",
  },
  {
    title: "quorum: a restarted node votes at once",
    file: NODE,
    find: "Math.max(sinceMs + maxTtlMs, overMs)",
    replace: "0",
  },
  {
    title: "quorum: the marker of an earlier process counts",
    file: NODE,
    find: `if (marker?.run !== run)
        return { type: "asleep", why: "unmarked" };`,
    replace: `if (!marker)
        return { type: "asleep", why: "unmarked" };`,
  },
  {
    title: "quorum: a restarted node does not ask how long leases are",
    file: ADMISSION,
    find: "const restMs = Math.max(known.restMs, ...telling.map(longRestMs));",
    replace: "const restMs = 0;",
  },
  {
    title: "quorum: nodes forget long leases while one of them lives",
    file: ADMISSION,
    find: "marker.longUntilMs + marker.longTtlMs - ",
    replace: "marker.longUntilMs - marker.longTtlMs - ",
  },
  {
    title: "quorum: long leases are not announced",
    file: NODE,
    find: `if (maxTtlMs < ttlMs)
        return { type: "asleep", why: "short", maxTtlMs };
    // Once`,
    replace: "// Once",
    also: {
      file: ACQUISITION,
      find: "isAnnounced(claim.ttlMs) || (await this.#orEnd(announce(claim.ttlMs)))",
      replace: "true",
    },
  },
];
