/**
 * The client of the quorum family, as small as it can be: it sends rounds of votes and renewals,
 * and believes what the code of the store makes of the answers. The numbers are the rules of
 * docs/guarantees.md.
 */
import {
  deadlineOf,
  highestStored,
  judge,
  judgeRenewal,
} from "../../src/stores/redlock/answers.js";
import type { NodeRenewal, Vote } from "../../src/stores/redlock/protocol.js";
import { nextBallot } from "../../src/stores/redlock/protocol.js";
import {
  BASE_US,
  type Proposer,
  type QuorumMessage,
  type QuorumScene,
  type Verb,
} from "./quorum-scene.js";

export const TICK_MS = 500;
export const TTL_MS: number = 2 * TICK_MS;
const DRIFT = 0.01;
/** Slow by half of what the margin allows for; a slow clock believes for longer. */
const RATE = 1 - DRIFT / 2;
const SILENT = { type: "time_out" } as const;

export const LATE_DEADLINE = "a quorum's deadline counts from the answers";

export class QuorumClient {
  readonly #without: string | null;

  /** `without`: the rule that is left out, to see that the search finds what it is for. */
  constructor(without: string | null) {
    this.#without = without;
  }

  nowMs({ tick }: QuorumScene): number {
    return tick * TICK_MS * RATE;
  }

  /** Rule 2: the clock decides, not a flag. */
  believes(scene: QuorumScene, owner: Proposer): boolean {
    return owner.phase === "held" && this.nowMs(scene) < owner.deadlineMs;
  }

  /** The wall clocks stand still, so that only the ballots that were seen make ballots rise. */
  propose(scene: QuorumScene, owner: Proposer, seen = 0): QuorumMessage[] {
    owner.phase = "voting";
    owner.rounds += 1;
    owner.ballot = nextBallot(BASE_US, seen);
    owner.sentMs = this.nowMs(scene);
    owner.votes = scene.nodes.map(() => undefined);
    return toAll(scene, "vote", owner, owner.rounds);
  }

  renew(scene: QuorumScene, owner: Proposer): QuorumMessage[] {
    owner.renewals += 1;
    owner.isRenewing = true;
    owner.sentMs = this.nowMs(scene);
    owner.renewed = scene.nodes.map(() => undefined);
    return toAll(scene, "renew", owner, owner.renewals);
  }

  /** Rule 4: however an attempt ends, it is given back on all nodes. */
  leave(scene: QuorumScene, owner: Proposer): QuorumMessage[] {
    owner.phase = "left";
    owner.votes = [];
    owner.renewed = [];
    return toAll(scene, "release", owner, 0);
  }

  onAnswer(scene: QuorumScene, message: QuorumMessage): QuorumMessage[] {
    const owner = scene.owner(message.owner);
    const { verb, node, round, answer } = message;
    if (verb === "vote" && owner.phase === "voting" && round === owner.rounds) {
      owner.votes[node] = answer as Vote;
      return this.#judge(scene, owner);
    }
    if (verb === "renew" && owner.phase === "held" && round === owner.renewals) {
      owner.renewed[node] = answer as NodeRenewal;
      return this.#judgeRenewal(scene, owner);
    }
    return [];
  }

  /** Nodes that have not answered count as silent. */
  onTimeOut(scene: QuorumScene, owner: Proposer): QuorumMessage[] {
    if (owner.phase === "voting") {
      owner.votes = owner.votes.map((vote) => vote ?? SILENT);
      return this.#judge(scene, owner);
    }
    owner.renewed = owner.renewed.map((answer) => answer ?? SILENT);
    return this.#judgeRenewal(scene, owner);
  }

  #judge(scene: QuorumScene, owner: Proposer): QuorumMessage[] {
    const judgement = judge(owner.votes);
    if (judgement === null) return [];
    if (judgement === "granted") return this.#accept(scene, owner);
    const seen = Math.max(owner.ballot, highestStored(owner.votes));
    const mayRaise = judgement === "raise" && owner.rounds < scene.budget.rounds;
    return mayRaise ? this.propose(scene, owner, seen) : this.leave(scene, owner);
  }

  /** Rule 1: a grant past its deadline is given back. */
  #accept(scene: QuorumScene, owner: Proposer): QuorumMessage[] {
    const deadlineMs = this.#deadline(scene, owner, owner.votes);
    if (this.nowMs(scene) >= deadlineMs) return this.leave(scene, owner);
    owner.phase = "held";
    owner.deadlineMs = deadlineMs;
    return [];
  }

  /** Rules 1 and 3: a renewal never shortens, and only certain losses end a lease. */
  #judgeRenewal(scene: QuorumScene, owner: Proposer): QuorumMessage[] {
    const judgement = owner.isRenewing ? judgeRenewal(owner.renewed) : null;
    if (judgement === null) return [];
    owner.isRenewing = false;
    if (judgement === "gone") return this.leave(scene, owner);
    if (judgement === "unknown") return [];
    const deadlineMs = this.#deadline(scene, owner, owner.renewed);
    owner.deadlineMs = Math.max(owner.deadlineMs, deadlineMs);
    return [];
  }

  #deadline(
    scene: QuorumScene,
    owner: Proposer,
    answers: readonly (Vote | NodeRenewal | undefined)[],
  ): number {
    const isLate = this.#without === LATE_DEADLINE;
    return deadlineOf(answers, isLate ? this.nowMs(scene) : owner.sentMs, DRIFT);
  }
}

function toAll(scene: QuorumScene, verb: Verb, owner: Proposer, round: number): QuorumMessage[] {
  const { id, ballot } = owner;
  return scene.nodes.map((_, node) => ({ verb, node, owner: id, ballot, round, answer: null }));
}
