import { isHopeless } from "./answers.js";
import { judgeRelease } from "./ballot.js";
import { quorumError } from "./failure.js";
import { Poll } from "./poll.js";
import type { RedlockGrant } from "./redlock-grant.js";
import type { Surroundings } from "./surroundings.js";
import { decodeRelease, type NodeRelease } from "./vote.js";
import type { Withdrawals } from "./withdrawals.js";

/** A poll ends as soon as a majority has answered; after a silent one, the next is longer. */
export const POLL_STEP_MS = 500;
const RETRY_MS = 50;

/** Gives back what is held: until a majority has said whether it was there, or time is over. */
export class Releases {
  readonly #around: Surroundings;
  readonly #withdrawals: Withdrawals;

  constructor(around: Surroundings, withdrawals: Withdrawals) {
    this.#around = around;
    this.#withdrawals = withdrawals;
  }

  async release(grant: RedlockGrant, args: readonly string[], untilMs: number): Promise<boolean> {
    const { port, nodes } = this.#around;
    // Absent after a try without an answer: that try released it, for nobody else could yet.
    const doubtful = new Set<number>();
    for (let failures = 0; ; failures += 1) {
      const limitMs = Math.min(untilMs - port.clock.nowMs(), POLL_STEP_MS * (failures + 1));
      const poll = this.#poll(grant, args, Math.max(1, limitMs), doubtful);
      const judgement = await poll.judged;
      if (judgement !== "silent" && judgement !== null) return judgement;
      for (const [at, answer] of poll.answers.entries()) {
        if (answer?.type === "time_out" || answer?.type === "error") doubtful.add(at);
      }
      const pauseMs = RETRY_MS * (failures + 1);
      if (isHopeless(poll.answers) || port.clock.nowMs() + pauseMs >= untilMs) {
        const about = { lockName: grant.claim.name, outcome: "unknown" } as const;
        throw quorumError(nodes, poll.answers, about);
      }
      await new Promise<void>((again) => port.timers.after(pauseMs, again, true));
    }
  }

  #poll(
    { claim, keys }: RedlockGrant,
    args: readonly string[],
    limitMs: number,
    doubtful: ReadonlySet<number>,
  ): Poll<NodeRelease, boolean | "silent"> {
    const { port, nodes } = this.#around;
    const before = nodes.map(({ driver }) => driver.changes());
    return new Poll<NodeRelease, boolean | "silent">(port, {
      nodes,
      keys,
      args,
      limitMs,
      decode: decodeRelease,
      judge: (answers) =>
        judgeRelease(
          answers.map((answer, at) => {
            const isResent = nodes[at]?.driver.changes() !== before[at];
            const isDoubtful = answer?.type === "absent" && (doubtful.has(at) || isResent);
            return isDoubtful ? { type: "released" } : answer;
          }),
        ),
      onAnswer: (answer, at, isLate) => {
        const node = nodes[at];
        if (isLate && answer.type === "error" && node) {
          this.#withdrawals.retry(node, keys, args, claim.ttlMs);
        }
      },
    });
  }
}
