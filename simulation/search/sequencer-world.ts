/**
 * The sequencer family in a small scope: a store as etcd is one, with revisions, sessions, guards,
 * watches and leaders; and clients that decide by the real rules of the queue. Each client has one
 * session, each waiter a watch of its own. A message and its answer arrive at once, unless late.
 */

import type { Entry } from "../../src/families/session/sequencer.js";
import {
  hasLimits,
  holderCount,
  mustTell,
  obstacleOf,
} from "../../src/families/session/standing.js";
import type { Request } from "../../src/rules/fits.js";
import { marginMs } from "../../src/rules/margin.js";
import { exclusion, noGhost, tokenOrder } from "./invariants.js";
import type { Move, World } from "./search.js";
import {
  type EntryOwner,
  type Place,
  type SequencerAnswer,
  type SequencerBudget,
  type SequencerMessage,
  SequencerScene,
  type SequencerVerb,
} from "./sequencer-scene.js";

const TICK_MS = 500;
const TTL_TICKS = 3;
const TTL_MS = TTL_TICKS * TICK_MS;
/** A slow clock believes for longer; the margin allows for 1 %. */
const RATE = 0.995;

type Scenes = Move<SequencerScene>[];

export class SequencerWorld implements World<SequencerScene> {
  readonly start: SequencerScene;
  readonly #requests: Readonly<Record<string, Request>>;
  readonly #without: string | null;

  /** `without`: the rule that is left out, to see that the search finds what it is for. */
  constructor(
    requests: Readonly<Record<string, Request>>,
    budget: SequencerBudget,
    without: string | null,
  ) {
    this.#requests = requests;
    this.#without = without;
    this.start = new SequencerScene(budget);
    this.start.owners = Object.keys(requests).map(idle);
    const clients = [...new Set(this.start.owners.map(({ client }) => client))];
    this.start.sessions = clients.map((client) => {
      const deadlineMs = TTL_MS - marginMs(TTL_MS);
      return { client, untilTick: TTL_TICKS, guard: 0, knownGuard: 0, deadlineMs, keptAt: 0 };
    });
  }

  keyOf(scene: SequencerScene): string {
    return scene.key();
  }

  wrongIn(scene: SequencerScene): string | null {
    if (scene.wrong) return scene.wrong;
    const believers = scene.owners.filter((owner) => this.#believes(scene, owner));
    const held = believers.map(({ id }) => ({ name: id, request: this.#requests[id] as Request }));
    const holders = scene.places.slice(0, holderCount(entries(scene.places)));
    const early = believers.find(({ id }) => !holders.some((place) => place.id === id));
    if (early) return exclusion(held) ?? `Order: ${early.id} believes before its turn.`;
    return exclusion(held) ?? this.#forgotten(scene, holders);
  }

  /** Where every message has arrived, no waiter waits for what it has already. */
  #forgotten(scene: SequencerScene, holders: readonly Place[]): string | null {
    if (!scene.isCalm || scene.looks || scene.net.length > 0) return null;
    const holding = holders.find(({ id }) => scene.owner(id).phase === "waiting");
    return holding ? `Wake-up: ${holding.id} waits though its entry holds.` : null;
  }

  moves(scene: SequencerScene): Scenes {
    const moves: Scenes = [];
    for (const { id, phase, isLeaving } of scene.owners) {
      const isUnderWay = scene.net.some(({ verb, who }) => verb === "leave" && who === id);
      if (phase === "idle") moves.push(...this.#act(scene, id, "enter"));
      else if (phase !== "left") moves.push(...this.#act(scene, id, "leave"));
      else if (isLeaving && !isUnderWay) moves.push(...this.#act(scene, id, "leave"));
    }
    for (const { client, keptAt, deadlineMs } of scene.sessions) {
      const isDue = keptAt < scene.tick && nowMs(scene) < deadlineMs;
      if (isDue) moves.push(...this.#act(scene, client, "keep-alive"));
    }
    for (const [at, message] of scene.net.entries()) {
      moves.push(...this.#deliver(scene, message, at));
    }
    if (scene.budget.elections > 0) moves.push(elect(scene));
    if (scene.tick < scene.budget.ticks) moves.push(this.#pass(scene));
    return moves;
  }

  /** A message arrives, and no waiter needs to look; or it is lost, and waiters look. */
  calmFrom(scene: SequencerScene): Scenes {
    const calm = scene.copy();
    calm.isCalm = true;
    Object.assign(calm.budget, { ticks: 0, faults: 0, elections: 0 });
    const lost = calm.copy();
    lost.looks = true;
    lost.net = [];
    return [
      { label: "now everything arrives", next: calm },
      { label: "now all that is under way is lost, and nothing else", next: lost },
    ];
  }

  calm(scene: SequencerScene): Move<SequencerScene> | null {
    const [first] = scene.net;
    if (first) return this.#deliver(scene, first, 0)[0] ?? null;
    for (const { id, client, phase, isLeaving } of scene.owners) {
      const isLate = nowMs(scene) >= scene.session(client).deadlineMs;
      const isOver = phase === "held" || phase === "entering" || (phase === "left" && isLeaving);
      if (isOver || (phase === "waiting" && isLate))
        return this.#act(scene, id, "leave")[0] ?? null;
    }
    for (const { client, keptAt, deadlineMs } of scene.sessions) {
      const isUsed = scene.owners.some((one) => one.client === client && one.phase === "waiting");
      const isDue = isUsed && keptAt < scene.tick && nowMs(scene) < deadlineMs;
      if (isDue) return this.#act(scene, client, "keep-alive")[0] ?? null;
    }
    const waiters = scene.owners.filter(({ phase }) => phase === "waiting");
    for (const { id } of scene.looks ? waiters : []) {
      const [look] = this.#act(scene, id, "list");
      if (look && look.next.owner(id).phase !== "waiting") return look;
    }
    return waiters.length + scene.places.length > 0 ? this.#pass(scene) : null;
  }

  wrongAtRest(): string | null {
    return null;
  }

  /** Rule 2: the clock decides, not a flag. All grants of a session have its deadline. */
  #believes(scene: SequencerScene, { phase, client }: EntryOwner): boolean {
    return phase === "held" && nowMs(scene) < scene.session(client).deadlineMs;
  }

  #act(scene: SequencerScene, who: string, verb: SequencerVerb): Scenes {
    const next = scene.copy();
    const isClient = verb === "keep-alive";
    const session = next.session(isClient ? who : next.owner(who).client);
    if (isClient) session.keptAt = next.tick;
    else if (verb === "enter" || verb === "leave") {
      const owner = next.owner(who);
      owner.phase = verb === "enter" ? "entering" : "left";
      if (verb === "enter") owner.isInDoubt = true;
      else owner.isLeaving = true;
    }
    const sentMs = nowMs(next);
    const message = { verb, who, guard: session.knownGuard, sentMs, answer: null };
    return this.#send({ label: `${who}: ${verb}`, next }, [message]);
  }

  #deliver(scene: SequencerScene, message: SequencerMessage, at: number): Scenes {
    const next = scene.copy();
    next.net.splice(at, 1);
    const { verb, who, answer } = message;
    if (answer) {
      const label = `arrives: answer "${answer.type}" to ${verb} of ${who}`;
      return this.#send({ label, next }, this.#hear(next, message));
    }
    if (verb === "event") {
      if (next.owner(who).phase !== "waiting") return [{ label: `an event for ${who}`, next }];
      if (this.#without === "a queue is read before a turn") next.owner(who).phase = "held";
      return this.#act(next, who, "list");
    }
    return this.#arrive({ label: `arrives late: ${verb} of ${who}`, next }, message, []);
  }

  #send(from: Move<SequencerScene>, sendings: readonly SequencerMessage[]): Scenes {
    const [message, ...rest] = sendings;
    if (!message) return [from];
    const moves = this.#arrive({ ...from, next: from.next.copy() }, message, rest);
    if (from.next.budget.faults === 0) return moves;
    const late = from.next.copy();
    late.budget.faults -= 1;
    late.net.push(message);
    const label = `${from.label}, ${message.verb} under way`;
    return [...moves, ...this.#send({ label, next: late }, rest)];
  }

  #arrive(
    { label, next }: Move<SequencerScene>,
    message: SequencerMessage,
    rest: readonly SequencerMessage[],
  ): Scenes {
    const moves: Scenes = [];
    const outcomes: [SequencerScene, SequencerAnswer][] = [];
    // A leader that was deposed does not know it, and answers a keep-alive without effect.
    if (message.verb === "keep-alive" && next.term > 0 && !next.isCalm) {
      outcomes.push([next.copy(), { type: "of an old term", places: [], guard: 0 }]);
    }
    outcomes.push([next, this.#execute(next, message)]);
    for (const [scene, answer] of outcomes.reverse()) {
      const answered = { ...message, answer };
      const told = `${label}, answer "${answer.type}"`;
      if (scene.budget.faults > 0) {
        const late = scene.copy();
        late.budget.faults -= 1;
        late.net.push(answered);
        moves.push(...this.#send({ label: `${told}, late`, next: late }, rest));
      }
      const heard = scene.copy();
      const sendings = this.#hear(heard, answered);
      moves.unshift(...this.#send({ label: told, next: heard }, [...rest, ...sendings]));
    }
    return moves;
  }

  #hear(scene: SequencerScene, message: SequencerMessage): SequencerMessage[] {
    const { verb, who, sentMs } = message;
    const answer = message.answer as SequencerAnswer;
    if (verb === "keep-alive") {
      this.#onKept(scene, who, sentMs, answer);
      return [];
    }
    const owner = scene.owner(who);
    const session = scene.session(owner.client);
    session.knownGuard = Math.max(session.knownGuard, answer.guard);
    if (verb === "leave") owner.isLeaving = false;
    const isAsked = verb === "enter" ? "entering" : "waiting";
    if (verb === "leave" || verb === "tell" || owner.phase !== isAsked) return [];
    if (verb === "enter") owner.isInDoubt = false;
    if (answer.type === "refused") {
      owner.phase = "left";
      return [];
    }
    return this.#judge(scene, owner, answer.places);
  }

  /** Rules 1 and 2: counted from the sending, never revived, and only where the term is proven. */
  #onKept(scene: SequencerScene, client: string, sentMs: number, answer: SequencerAnswer): void {
    const session = scene.session(client);
    const isProven = answer.type === "kept" || this.#without === "a keep-alive needs its term";
    if (!isProven || answer.type === "refused" || nowMs(scene) >= session.deadlineMs) return;
    const isLate = this.#without === "a session's deadline counts from the sending";
    const fromMs = isLate ? nowMs(scene) : sentMs;
    session.deadlineMs = Math.max(session.deadlineMs, fromMs + TTL_MS - marginMs(TTL_MS));
  }

  /** An entry holds when the listed queue up to it may hold together. */
  #judge(scene: SequencerScene, owner: EntryOwner, places: readonly Place[]): SequencerMessage[] {
    const { id, client, phase } = owner;
    const listed = entries(places);
    const index = places.findIndex((place) => place.id === id);
    const send = (verb: SequencerVerb): SequencerMessage => {
      const { knownGuard } = scene.session(client);
      return { verb, who: id, guard: knownGuard, sentMs: nowMs(scene), answer: null };
    };
    const isOver = nowMs(scene) >= scene.session(client).deadlineMs;
    if (index < 0 || isOver) {
      owner.phase = "left";
      owner.isLeaving = index >= 0;
      return index < 0 ? [] : [send("leave")];
    }
    if (index < holderCount(listed)) {
      owner.phase = "held";
      const { mode, token } = places[index] as Place;
      if (mode === "exclusive") scene.wrong ??= tokenOrder(id, token, scene.highestToken);
      scene.highestToken = Math.max(scene.highestToken, token);
      const isSilent = this.#without === "a holder tells those behind";
      const isTold = phase === "waiting" && mustTell(listed, index, owner.hadLimits) && !isSilent;
      return isTold ? [send("tell")] : [];
    }
    owner.phase = "waiting";
    owner.hadLimits ||= hasLimits(listed);
    const obstacle = obstacleOf(listed, index);
    owner.watch =
      obstacle.type === "leaving" ? "*" : `${obstacle.id}${obstacle.orWritten ? "+" : ""}`;
    // A watch begins at the moment that was listed: it tells what happened since.
    const isGone = (one: Place): boolean => !scene.places.some((place) => place.id === one.id);
    const watched = places.filter((one) => isWatched(owner, one.id, false));
    const isNew = (one: Place): boolean => {
      const now = scene.places.find((place) => place.id === one.id);
      return owner.watch.endsWith("+") && now?.isWritten === true && !one.isWritten;
    };
    if (watched.some((one) => isGone(one) || isNew(one))) scene.net.push(eventFor(id));
    return [];
  }

  #execute(scene: SequencerScene, { verb, who, guard }: SequencerMessage): SequencerAnswer {
    if (verb === "keep-alive") {
      const session = scene.session(who);
      const isThere = session.untilTick > scene.tick;
      if (isThere) session.untilTick = scene.tick + TTL_TICKS;
      return { type: isThere ? "kept" : "refused", places: [], guard: 0 };
    }
    const { client, isInDoubt } = scene.owner(who);
    const session = scene.session(client);
    const mine = scene.places.find(({ id }) => id === who);
    let type: SequencerAnswer["type"] = "listed";
    if (verb === "enter" && !mine) {
      const isRefused = session.untilTick <= scene.tick || session.guard !== guard;
      if (isRefused) type = "refused";
      else {
        const token = ++scene.revision;
        const place = {
          ...(this.#requests[who] as Request),
          id: who,
          client,
          token,
          isWritten: false,
        };
        scene.places = [...scene.places, place];
      }
    }
    if (verb === "leave") {
      type = "done";
      scene.departed = [...new Set([...scene.departed, who])].sort();
      const isGuarded = isInDoubt && this.#without !== "a withdrawal writes the guard";
      if (isGuarded) session.guard = ++scene.revision;
      remove(scene, ({ id }) => id === who);
    }
    if (verb === "tell" && mine) {
      type = "done";
      const written = { ...mine, isWritten: true };
      scene.places = scene.places.map((place) => (place === mine ? written : place));
      tellWatchers(scene, who, true);
    }
    scene.wrong ??= noGhost(scene.departed, (id) => scene.places.some((one) => one.id === id));
    return { type, places: scene.places, guard: session.guard };
  }

  #pass(scene: SequencerScene): Move<SequencerScene> {
    const next = scene.copy();
    next.tick += 1;
    const ended = next.sessions.filter(({ untilTick }) => untilTick <= next.tick);
    for (const { client } of ended) remove(next, (place) => place.client === client);
    return { label: `time: ${next.tick}`, next };
  }
}

function remove(scene: SequencerScene, isGone: (place: Place) => boolean): void {
  const gone = scene.places.filter(isGone);
  scene.places = scene.places.filter((place) => !isGone(place));
  for (const { id } of gone) tellWatchers(scene, id, false);
}

function tellWatchers(scene: SequencerScene, entry: string, isWritten: boolean): void {
  for (const owner of scene.owners) {
    if (owner.phase !== "waiting" || !isWatched(owner, entry, isWritten)) continue;
    const isKnown = scene.net.some(({ verb, who }) => verb === "event" && who === owner.id);
    if (!isKnown) scene.net.push(eventFor(owner.id));
  }
}

function isWatched({ watch }: EntryOwner, entry: string, isWritten: boolean): boolean {
  if (isWritten) return watch === `${entry}+`;
  return watch === "*" || watch === entry || watch === `${entry}+`;
}

function eventFor(who: string): SequencerMessage {
  return { verb: "event", who, guard: 0, sentMs: 0, answer: null };
}

/** Every lease gets its full ttl again. */
function elect(scene: SequencerScene): Move<SequencerScene> {
  const next = scene.copy();
  next.budget.elections -= 1;
  next.term += 1;
  for (const session of next.sessions) {
    if (session.untilTick > next.tick) session.untilTick = next.tick + TTL_TICKS;
  }
  return { label: "another leader is elected", next };
}

function entries(places: readonly Place[]): Entry[] {
  return places.map(({ id, client, token, mode, weight, limit }) => {
    return { id, session: client, token: BigInt(token), text: null, mode, weight, limit };
  });
}

function nowMs({ tick }: SequencerScene): number {
  return tick * TICK_MS * RATE;
}

function idle(id: string): EntryOwner {
  const flags = { isInDoubt: false, isLeaving: false, hadLimits: false };
  return { id, client: id.charAt(0), phase: "idle", watch: "", ...flags };
}
