import type { Survey } from "../../src/stores/redlock/membership.js";
import type { NameState, NodeState } from "../../src/stores/redlock/node-rules.js";
import type { NodeRelease, NodeRenewal, Vote } from "../../src/stores/redlock/protocol.js";

export const NAME = "x";
/** Old enough that every age which a node calculates with lies after its beginning. */
export const BASE_US: number = 100 * 86_400_000_000;

export type Verb = "vote" | "renew" | "release";
export type Answer = Vote | NodeRenewal | NodeRelease;

/** An owner, which is one attempt of a client to get the lock. */
export interface Proposer {
  readonly id: string;
  phase: "idle" | "voting" | "held" | "left";
  ballot: number;
  rounds: number;
  renewals: number;
  /** When the present round of votes or renewals was sent. */
  sentMs: number;
  votes: (Vote | undefined)[];
  renewed: (NodeRenewal | undefined)[];
  isRenewing: boolean;
  deadlineMs: number;
}

export interface QuorumMessage {
  readonly verb: Verb;
  readonly node: number;
  readonly owner: string;
  readonly ballot: number;
  /** Which round of votes, or which renewal. */
  readonly round: number;
  /** Null on the way to the node. */
  readonly answer: Answer | null;
}

export interface QuorumBudget {
  ticks: number;
  faults: number;
  rounds: number;
  renewals: number;
  restarts: number;
}

/** The nodes, the proposers and what is between them, at one moment. */
export class QuorumScene {
  tick = 0;
  nodes: NodeState[] = [];
  owners: Proposer[] = [];
  net: QuorumMessage[] = [];
  /** The surveys that a client has of the nodes, to admit restarted ones. */
  surveys: readonly Survey[] | null = null;
  budget: QuorumBudget;
  isCalm = false;
  /** For each node, the owners that were released there. */
  departed: readonly (readonly string[])[] = [[], [], []];
  highestToken = -1;
  wrong: string | null = null;

  constructor(budget: QuorumBudget) {
    this.budget = budget;
  }

  copy(): QuorumScene {
    const copy = new QuorumScene({ ...this.budget });
    Object.assign(copy, this, { budget: copy.budget });
    copy.nodes = this.nodes.map((node) => ({ ...node, names: copyNames(node.names) }));
    copy.owners = this.owners.map((owner) => {
      return { ...owner, votes: [...owner.votes], renewed: [...owner.renewed] };
    });
    copy.net = [...this.net];
    return copy;
  }

  owner(id: string): Proposer {
    return this.owners.find((owner) => owner.id === id) as Proposer;
  }

  /**
   * Owners are alike, and so are nodes: no rule compares names of owners, and of nodes only numbers
   * are counted. Owners are called by their order, as their own states sort them, and what belongs
   * to a node is written together, so that nodes may be sorted as well.
   */
  key(): string {
    const signed = this.owners.map((owner) => ({ id: owner.id, text: textOf(owner) }));
    signed.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
    const names = new Map(signed.map(({ id }, index) => [id, index]));
    const { ticks, faults, restarts } = this.budget;
    const head = `${this.tick} ${ticks} ${faults} ${restarts} ${this.isCalm} ${this.highestToken}`;
    const nodes = this.nodes.map((node, at) => {
      const lock = node.names.get(NAME)?.lock;
      const ballot = node.names.get(NAME)?.ballot?.stored;
      const { marker, run } = node;
      const survey = this.surveys?.[at];
      let text = `${lock && [names.get(lock.owner), lock.token, lock.untilMs, lock.isRetaken]} `;
      text += `${ballot} ${markerText(marker, run)} ${survey && markerText(survey.marker, run)}`;
      text += ` ${survey?.run === run} ${survey?.nowUs}`;
      for (const { id } of signed) {
        const { votes, renewed } = this.owner(id);
        text += `|${JSON.stringify([votes[at], renewed[at]])}${this.departed[at]?.includes(id)}`;
      }
      const messages = this.net.filter((message) => message.node === at);
      const texts = messages.map(({ verb, owner, ballot: number, round, answer }) => {
        return `${verb}${names.get(owner)} ${number} ${round} ${answer && JSON.stringify(answer)}`;
      });
      return text + texts.sort().join("|");
    });
    return `${head}${signed.map(({ text }) => text).join("|")}||${nodes.sort().join("||")}`;
  }
}

/** The part of an owner that can still matter, apart from its votes at each node. */
function textOf({ phase, ballot, rounds, renewals, sentMs, isRenewing, deadlineMs }: Proposer) {
  if (phase === "idle" || phase === "left") return phase;
  const held = phase === "held" ? `${renewals} ${isRenewing} ${deadlineMs}` : "";
  return `${phase} ${ballot} ${rounds} ${sentMs} ${held}`;
}

function markerText(marker: NodeState["marker"], run: string): string {
  return marker ? `${marker.run === run} ${marker.fromMs} ${marker.floor} ${marker.top}` : "-";
}

function copyNames(names: ReadonlyMap<string, NameState>): Map<string, NameState> {
  return new Map([...names].map(([name, state]) => [name, { ...state }]));
}
