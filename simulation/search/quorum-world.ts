/**
 * The quorum family in a small scope: three nodes with their real rules, and proposers with the
 * real judgement of answers. A request to a node and its answer arrive at once, unless they are
 * late. A node restarts empty, or with the marker of its earlier process, and is admitted by the
 * real rules.
 */
import { NO_LIMIT, type Request } from "../../src/rules/fits.js";
import { admit } from "../../src/stores/redlock/membership.js";
import {
  instruct,
  type NodeState,
  release,
  renew,
  vote,
} from "../../src/stores/redlock/node-rules.js";
import { exclusion, tokenOrder } from "./invariants.js";
import { QuorumClient, TICK_MS, TTL_MS } from "./quorum-client.js";
import {
  type Answer,
  BASE_US,
  NAME,
  type Proposer,
  type QuorumBudget,
  type QuorumMessage,
  QuorumScene,
} from "./quorum-scene.js";
import type { Move, World } from "./search.js";

const SET = "set";
const NODES = 3;
const DAY_US = 86_400_000_000;
const REQUEST: Request = { mode: "exclusive", weight: 1, limit: NO_LIMIT };
const RULES = { set: SET, maxTtlMs: TTL_MS, restMs: 0, bootstrap: "wait" } as const;

type Scenes = Move<QuorumScene>[];

export class QuorumWorld implements World<QuorumScene> {
  readonly start: QuorumScene;
  readonly #client: QuorumClient;

  constructor(owners: number, budget: QuorumBudget, without: string | null) {
    this.#client = new QuorumClient(without);
    this.start = new QuorumScene(budget);
    this.start.nodes = Array.from({ length: NODES }, (_, at) => awake(`${at}`));
    this.start.owners = Array.from({ length: owners }, (_, at) => idle(`p${at + 1}`));
  }

  keyOf(scene: QuorumScene): string {
    return scene.key();
  }

  wrongIn(scene: QuorumScene): string | null {
    if (scene.wrong) return scene.wrong;
    const believers = scene.owners.filter((owner) => this.#client.believes(scene, owner));
    return exclusion(believers.map(({ id }) => ({ name: id, request: REQUEST })));
  }

  moves(scene: QuorumScene): Scenes {
    const { budget } = scene;
    const moves = scene.owners.flatMap((owner) => this.#ownerMoves(scene, owner));
    for (const [at, message] of scene.net.entries()) {
      moves.push(...this.#deliver(scene, message, at));
    }
    if (budget.restarts > 0) {
      for (const at of scene.nodes.keys()) moves.push(...restarts(scene, at));
    }
    if (scene.nodes.some((node) => !isAwake(node))) moves.push(readmit(scene));
    if (scene.tick < budget.ticks) moves.push(pass(scene));
    return moves;
  }

  /** A message under way arrives, or is lost. */
  calmFrom(scene: QuorumScene): Scenes {
    const calm = scene.copy();
    calm.isCalm = true;
    Object.assign(calm.budget, { ticks: 0, faults: 0, restarts: 0 });
    const lost = calm.copy();
    lost.net = [];
    const begins = [{ label: "now all that is under way is lost, and nothing else", next: lost }];
    if (calm.net.length > 0) begins.push({ label: "now everything arrives", next: calm });
    return begins;
  }

  calm(scene: QuorumScene): Move<QuorumScene> | null {
    const [first] = scene.net;
    const [delivery] = first ? this.#deliver(scene, first, 0) : [];
    if (delivery) return delivery;
    for (const owner of scene.owners) {
      if (owner.phase === "held") return this.#act(scene, owner, "releases")[0] ?? null;
      if (owner.phase === "voting") return this.#act(scene, owner, "waits no longer")[0] ?? null;
    }
    const isKept = scene.nodes.some((node) => {
      const lock = node.names.get(NAME)?.lock;
      return lock && lock.untilMs > nowUs(scene) / 1000;
    });
    if (scene.nodes.some((node) => !isAwake(node))) {
      const { label, next } = readmit(scene);
      return scene.surveys
        ? { ...pass(next), label: `${label}, and time passes` }
        : { label, next };
    }
    return isKept ? pass(scene) : null;
  }

  /** Everybody has left: whoever comes now gets the lock, in a round above what the nodes know. */
  wrongAtRest(scene: QuorumScene): string | null {
    const next = scene.copy();
    next.budget.rounds = 3;
    next.owners = [idle("newcomer")];
    next.highestToken = -1;
    const newcomer = next.owner("newcomer");
    const [move] = this.#send({ label: "", next }, this.#client.propose(next, newcomer));
    const isHeld = move?.next.owner("newcomer").phase === "held";
    return isHeld ? null : "Wake-up: the lock is free, but a newcomer does not get it.";
  }

  #ownerMoves(scene: QuorumScene, owner: Proposer): Scenes {
    const { phase, renewals, isRenewing } = owner;
    const moves: Scenes = [];
    if (phase === "idle") moves.push(...this.#act(scene, owner, "proposes"));
    if (phase === "voting") {
      moves.push(...this.#act(scene, owner, "waits no longer"));
      moves.push(...this.#act(scene, owner, "gives up"));
    }
    if (phase === "held") {
      const isBelieved = this.#client.believes(scene, owner);
      moves.push(...this.#act(scene, owner, isBelieved ? "releases" : "notices its loss"));
      if (isRenewing) moves.push(...this.#act(scene, owner, "waits no longer"));
      else if (isBelieved && renewals < scene.budget.renewals) {
        moves.push(...this.#act(scene, owner, "renews"));
      }
    }
    return moves;
  }

  #act(scene: QuorumScene, { id }: Proposer, what: string): Scenes {
    const next = scene.copy();
    const owner = next.owner(id);
    const sendings = (): QuorumMessage[] => {
      if (what === "proposes") return this.#client.propose(next, owner);
      if (what === "renews") return this.#client.renew(next, owner);
      if (what === "waits no longer") return this.#client.onTimeOut(next, owner);
      return this.#client.leave(next, owner);
    };
    return this.#send({ label: `${id} ${what}`, next }, sendings());
  }

  #deliver(scene: QuorumScene, message: QuorumMessage, at: number): Scenes {
    const next = scene.copy();
    next.net.splice(at, 1);
    const { verb, owner, node, answer } = message;
    if (answer) {
      const label = `arrives: answer "${answer.type}" of node ${node} to the ${verb} of ${owner}`;
      return this.#send({ label, next }, this.#hear(next, message));
    }
    return this.#arrive({ label: `arrives late: ${verb} of ${owner}`, next }, message, []);
  }

  /** One after the other: at once, with its answer late, or late itself. */
  #send(from: Move<QuorumScene>, sendings: readonly QuorumMessage[]): Scenes {
    const [message, ...rest] = sendings;
    if (!message) return [from];
    const moves = this.#arrive({ ...from, next: from.next.copy() }, message, rest);
    if (from.next.budget.faults === 0) return moves;
    const late = from.next.copy();
    late.budget.faults -= 1;
    late.net.push(message);
    const label = `${from.label}, ${message.verb} to node ${message.node} under way`;
    return [...moves, ...this.#send({ label, next: late }, rest)];
  }

  #arrive(
    { label, next }: Move<QuorumScene>,
    message: QuorumMessage,
    rest: QuorumMessage[],
  ): Scenes {
    const answer = execute(next, message);
    const answered = { ...message, answer };
    const told = `${label}, node ${message.node}: ${answer.type}`;
    const moves: Scenes = [];
    if (next.budget.faults > 0 && message.verb !== "release") {
      const late = next.copy();
      late.budget.faults -= 1;
      late.net.push(answered);
      moves.push(...this.#send({ label: `${told}, but late`, next: late }, rest));
    }
    const sendings = this.#hear(next, answered);
    return [...this.#send({ label: told, next }, [...rest, ...sendings]), ...moves];
  }

  #hear(scene: QuorumScene, message: QuorumMessage): QuorumMessage[] {
    const owner = scene.owner(message.owner);
    const wasHeld = owner.phase === "held";
    const sendings = this.#client.onAnswer(scene, message);
    if (!wasHeld && owner.phase === "held") {
      scene.wrong ??= tokenOrder(owner.id, owner.ballot - BASE_US, scene.highestToken);
      scene.highestToken = Math.max(scene.highestToken, owner.ballot - BASE_US);
    }
    return sendings;
  }
}

/** The node decides; what it shows before and after is checked. */
function execute(scene: QuorumScene, { verb, node: at, owner, ballot }: QuorumMessage): Answer {
  const node = scene.nodes[at] as NodeState;
  const request = { set: SET, owner, ballot, span: 1, ttlMs: TTL_MS, channel: "" };
  if (verb === "release") {
    const departed = scene.departed.map((owners, index) => {
      return index === at && !owners.includes(owner) ? [...owners, owner] : owners;
    });
    scene.departed = departed;
    return release(node, NAME, nowUs(scene), { owner, ballot });
  }
  const decide = verb === "vote" ? vote : renew;
  const answer = decide(node, NAME, nowUs(scene), request);
  if (answer.type === "granted" && scene.departed[at]?.includes(owner)) {
    scene.wrong ??= `Ghost: node ${at} keeps the lock for ${owner}, which was released there.`;
  }
  return answer;
}

/** A client looks at the nodes twice, and tells each what the rules of admission say. */
function readmit(scene: QuorumScene): Move<QuorumScene> {
  const next = scene.copy();
  const seen = next.nodes.map(({ run, marker }) => ({ run, marker, nowUs: nowUs(next) }));
  if (!next.surveys) {
    next.surveys = seen;
    return { label: "a client looks at the nodes", next };
  }
  for (const [at, instruction] of admit(next.surveys, seen, RULES).entries()) {
    const node = next.nodes[at] as NodeState;
    if (instruction) instruct(node, nowUs(next), SET, instruction);
  }
  next.surveys = null;
  return { label: "the client tells the nodes that restarted what they need to know", next };
}

/** Empty, or with its marker, as an old snapshot has it. */
function restarts(scene: QuorumScene, at: number): Scenes {
  return [null, scene.nodes[at]?.marker ?? null].map((marker) => {
    const next = scene.copy();
    next.budget.restarts -= 1;
    const startedMs = nowUs(next) / 1000;
    next.nodes[at] = { run: `${at}+`, startedMs, marker, names: new Map() };
    return { label: `node ${at} restarts ${marker ? "with an old snapshot" : "empty"}`, next };
  });
}

function pass(scene: QuorumScene): Move<QuorumScene> {
  const next = scene.copy();
  next.tick += 1;
  return { label: `time: ${next.tick}`, next };
}

function nowUs({ tick }: QuorumScene): number {
  return BASE_US + tick * TICK_MS * 1000;
}

function isAwake({ run, marker }: NodeState): boolean {
  return marker?.run === run && marker.floor !== null;
}

function awake(run: string): NodeState {
  const lease = { maxTtlMs: TTL_MS, longTtlMs: 0, longUntilMs: 0 };
  const marker = { run, set: SET, fromMs: 0, floor: BASE_US - DAY_US, top: 0, ...lease };
  return { run, startedMs: 0, marker, names: new Map() };
}

function idle(id: string): Proposer {
  const never = { rounds: 0, renewals: 0, sentMs: 0, isRenewing: false, deadlineMs: 0 };
  return { id, phase: "idle", ballot: 0, votes: [], renewed: [], ...never };
}
