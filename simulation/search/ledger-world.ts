/**
 * The arbiter family in a small scope: the real ledger, two clients with three owners of one name,
 * and a network that holds back, loses and doubles a few messages. A message that nothing happens
 * to arrives at once, and so does its answer. A client that is stopped is one that makes no move.
 */
import type { Request } from "../../src/rules/fits.js";
import { exclusion } from "./invariants.js";
import { type ClientBreakage, LedgerClient, type Sending } from "./ledger-client.js";
import {
  type Budget,
  LedgerScene,
  type Message,
  type OwnerSide,
  type Sent,
} from "./ledger-scene.js";
import { execute, storeUs } from "./ledger-server.js";
import type { Move, World } from "./search.js";

type Scenes = Move<LedgerScene>[];

export class LedgerWorld implements World<LedgerScene> {
  readonly start: LedgerScene;
  readonly #requests: Readonly<Record<string, Request>>;
  readonly #client: LedgerClient;

  constructor(
    requests: Readonly<Record<string, Request>>,
    budget: Budget,
    broken: ClientBreakage | null = null,
  ) {
    this.#requests = requests;
    this.#client = new LedgerClient(requests, broken);
    this.start = new LedgerScene(budget);
    this.start.owners = Object.keys(requests).map((id) => idle(id));
    for (const { client } of this.start.owners) this.start.heartbeatAt[client] = -1;
  }

  keyOf(scene: LedgerScene): string {
    return scene.key((id) => JSON.stringify(this.#requests[id]));
  }

  wrongIn(scene: LedgerScene): string | null {
    if (scene.wrong) return scene.wrong;
    // `revoke` frees the lock at once: its holder is excused until its client is told.
    const believers = scene.owners.filter((owner) => {
      return this.#client.believes(scene, owner) && !scene.revoked.includes(owner.id);
    });
    return exclusion(
      believers.map(({ id }) => ({ name: id, request: this.#requests[id] as Request })),
    );
  }

  moves(scene: LedgerScene): Scenes {
    const { budget } = scene;
    const moves: Scenes = [];
    for (const { id, client } of scene.owners) {
      if (client !== scene.crashed) moves.push(...this.#ownerMoves(scene, id));
    }
    for (const client of Object.keys(scene.heartbeatAt)) {
      if (client === scene.crashed) continue;
      const isDue = scene.heartbeatAt[client] !== scene.tick;
      if (isDue) moves.push(...this.#heartbeat(scene, client));
    }
    for (const [at, message] of scene.net.entries()) {
      moves.push(...this.#messageMoves(scene, message, at));
    }
    const [holder] = scene.ledger.holders();
    if (budget.revokes > 0 && holder) moves.push(this.#revoke(scene, holder.owner, holder.token));
    if (scene.tick < budget.ticks)
      moves.push({ label: `time: ${scene.tick + 1}`, next: pass(scene) });
    return moves;
  }

  /** A message under way arrives or is lost; and a client may never move again. */
  calmFrom(scene: LedgerScene): Scenes {
    const begin = (label: string, how: (next: LedgerScene) => void): Move<LedgerScene> => {
      const next = scene.copy();
      next.isCalm = true;
      Object.assign(next.budget, { ticks: 0, faults: 0, revokes: 0 });
      how(next);
      return { label, next };
    };
    const lose = (next: LedgerScene, crashed = ""): void => {
      next.net = [];
      next.crashed = crashed;
    };
    const clients = Object.keys(scene.heartbeatAt);
    const begins = [begin("now all that is under way is lost, and nothing else", lose)];
    if (scene.net.length > 0) begins.push(begin("now everything arrives", () => {}));
    for (const client of clients) {
      const isThere = scene.owners.some((one) => {
        const isIn = scene.ledger.holder(one.id) ?? scene.ledger.waiter(one.id);
        return one.client === client && isIn !== undefined;
      });
      if (!isThere) continue;
      begins.push(begin(`now client ${client} crashes`, (next) => lose(next, client)));
    }
    return begins;
  }

  /** Clients do what their timers tell them to, and holders release. */
  calm(start: LedgerScene): Move<LedgerScene> | null {
    const [first] = start.net;
    const [delivery] = first ? this.#messageMoves(start, first, 0) : [];
    if (delivery) return delivery;
    for (const owner of start.owners) {
      const [move] = owner.client === start.crashed ? [] : this.#calmMoves(start, owner);
      if (move) return move;
    }
    for (const client of Object.keys(start.heartbeatAt)) {
      const isDue = client !== start.crashed && start.heartbeatAt[client] !== start.tick;
      const [move] = isDue ? this.#heartbeat(start, client) : [];
      if (move) return move;
    }
    const isWaiting = start.owners.some(
      ({ phase, client }) => phase === "asking" && client !== start.crashed,
    );
    if (!isWaiting && start.ledger.isEmpty) return null;
    const next = pass(start);
    // No client asks any more: a look at the name drops expired holders.
    if (!isWaiting) execute(next, { type: "inspect", key: next.ledger.key });
    return { label: `time: ${next.tick}`, next };
  }

  wrongAtRest(): string | null {
    return null;
  }

  #calmMoves(scene: LedgerScene, owner: OwnerSide): Scenes {
    const { id, phase } = owner;
    if (phase === "held")
      return this.#act(scene, id, "releases", (next, one) => this.#client.leave(next, one));
    if (owner.isLeaving)
      return this.#act(scene, id, "releases again", (next, one) => this.#client.leave(next, one));
    const isAsking = phase === "asking" && (!owner.isQueued || owner.confirming > 0);
    return isAsking
      ? this.#act(scene, id, "asks again", (next, one) => this.#client.ask(next, one))
      : [];
  }

  #ownerMoves(scene: LedgerScene, id: string): Scenes {
    const owner = scene.owner(id) as OwnerSide;
    const { asks, renewals } = scene.budget;
    const moves: Scenes = [];
    const add = (what: string, how: (next: LedgerScene, one: OwnerSide) => Sending): void => {
      moves.push(...this.#act(scene, id, what, how));
    };
    if (owner.phase === "idle") add("asks", (next, one) => this.#client.ask(next, one));
    const isInDoubt = owner.isUnderWay || owner.confirming > 0;
    if (owner.phase === "asking" && isInDoubt && owner.asks < asks)
      add("asks again", (next, one) => this.#client.ask(next, one));
    if (owner.phase === "asking") add("gives up", (next, one) => this.#client.leave(next, one));
    const isBelieved = this.#client.believes(scene, owner);
    if (owner.phase === "held")
      add(isBelieved ? "releases" : "notices its loss", (next, one) =>
        this.#client.leave(next, one),
      );
    if (isBelieved && owner.renewals < renewals)
      add("renews", (next, one) => this.#client.renew(next, one));
    const isUnanswered = owner.isLeaving && !scene.net.some((one) => isReleaseOf(one, id));
    if (isUnanswered) add("releases again", (next, one) => this.#client.leave(next, one));
    return moves;
  }

  #act(
    scene: LedgerScene,
    id: string,
    what: string,
    how: (next: LedgerScene, one: OwnerSide) => Sending,
  ): Scenes {
    const next = scene.copy();
    return this.#send({ label: `${id} ${what}`, next }, [how(next, next.owner(id) as OwnerSide)]);
  }

  #heartbeat(scene: LedgerScene, client: string): Scenes {
    const next = scene.copy();
    const sent = this.#client.heartbeat(next, client);
    return sent ? this.#send({ label: `client ${client} sends a heartbeat`, next }, [sent]) : [];
  }

  #messageMoves(scene: LedgerScene, message: Message, at: number): Scenes {
    const next = scene.copy();
    next.net.splice(at, 1);
    if (message.type !== "request") {
      const sendings = this.#deliver(next, message);
      return this.#send({ label: `arrives: ${textOf(message)}`, next }, sendings);
    }
    const label = `arrives late: ${textOf(message)}`;
    const moves = this.#arrive({ label, next: next.copy() }, message.sent);
    if (scene.budget.faults > 0) {
      const doubled = next.copy();
      doubled.budget.faults -= 1;
      const sent = { ...message.sent, isResent: true };
      doubled.net.push({ type: "request", sent });
      moves.push(
        ...this.#arrive({ label: `arrives twice: ${textOf(message)}`, next: doubled }, sent),
      );
    }
    return moves;
  }

  /** Each of them in turn: at once, with its answer late, or late itself. */
  #send(from: Move<LedgerScene>, sendings: readonly Sending[]): Scenes {
    const [sent, ...rest] = sendings;
    if (sent === undefined) return [from];
    if (sent === null) return this.#send(from, rest);
    const moves = this.#arrive({ ...from, next: from.next.copy() }, sent);
    if (from.next.budget.faults > 0) {
      const late = from.next.copy();
      late.budget.faults -= 1;
      late.net.push({ type: "request", sent });
      moves.push({ label: `${from.label}, ${sent.command.type} under way`, next: late });
    }
    return rest.length === 0 ? moves : moves.flatMap((move) => this.#send(move, rest));
  }

  #arrive({ label, next }: Move<LedgerScene>, sent: Sent): Scenes {
    const reply = execute(next, sent.command);
    const answer = { type: "answer", sent, reply, nowUs: storeUs(next) } as const;
    const told = `${label}, ${sent.command.type}: ${reply.type}`;
    const moves: Scenes = [];
    if (next.budget.faults > 0) {
      const late = next.copy();
      late.budget.faults -= 1;
      late.net.push(answer);
      moves.push({ label: `${told}, answer under way`, next: late });
    }
    const sendings = this.#deliver(next, answer);
    return [...this.#send({ label: told, next }, sendings), ...moves];
  }

  /** A client that is told of a revocation is excused no longer. */
  #deliver(scene: LedgerScene, message: Exclude<Message, { type: "request" }>): Sending[] {
    const isPush = message.type === "push";
    const { client } = isPush ? message.push : message.sent;
    if (client === scene.crashed) return [];
    const sendings = this.#client.onMessage(scene, message);
    const told = isPush ? message.push : message.sent.command;
    const isTold = isPush ? message.push.type === "revoked" : message.reply.type === "gone";
    if (isTold && "owner" in told) {
      scene.revoked = scene.revoked.filter((owner) => owner !== told.owner);
    }
    return sendings;
  }

  #revoke(scene: LedgerScene, owner: string, token: number): Move<LedgerScene> {
    const next = scene.copy();
    next.budget.revokes -= 1;
    next.revoked = [...next.revoked, owner];
    execute(next, { type: "revoke", key: next.ledger.key, token, reason: "" });
    return { label: `an operator revokes ${owner}`, next };
  }
}

function idle(id: string): OwnerSide {
  return {
    id,
    client: id.charAt(0),
    phase: "idle",
    asks: 0,
    renewals: 0,
    isUnderWay: false,
    mayStillArrive: false,
    hasEntered: false,
    isQueued: false,
    notAfterUs: 0,
    confirming: 0,
    token: 0,
    deadlineMs: 0,
    isLeaving: false,
    tombstoneUs: 0,
  };
}

function pass(scene: LedgerScene): LedgerScene {
  const next = scene.copy();
  next.tick += 1;
  return next;
}

function isReleaseOf(message: Message, id: string): boolean {
  if (message.type === "push") return false;
  const { command } = message.sent;
  return command.type === "release" && command.owner === id;
}

function textOf(message: Message): string {
  if (message.type === "push") {
    const { push } = message;
    return `push "${push.type}" for ${push.type === "granted" ? push.grant.owner : push.owner}`;
  }
  const { command, client } = message.sent;
  const who = "owner" in command ? command.owner : client;
  return message.type === "request"
    ? `${command.type} of ${who}`
    : `answer "${message.reply.type}" to ${command.type} of ${who}`;
}
