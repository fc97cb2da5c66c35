/**
 * The client of the arbiter family, as small as it can be: what it believes, and what it asks for.
 * The numbers are the rules of docs/guarantees.md. How far a grant is believed (1), and whether a
 * push is fresh ("Handoff"), is decided by the code of the store itself.
 */

import { ClockBounds } from "../../src/families/ledger/clock-bounds.js";
import type { Request } from "../../src/rules/fits.js";
import type {
  Acquire,
  Command,
  Confirm,
  HeartbeatReply,
  PushedGrant,
  Reply,
} from "../../src/rules/ledger-command.js";
import { deadlineOf, marginMs } from "../../src/rules/margin.js";
import type { LedgerScene, Message, OwnerSide, Sent } from "./ledger-scene.js";

export const TICK_MS = 500;
export const TTL_MS: number = 2 * TICK_MS;
const OFFER_MS = TICK_MS;
const KEY = "l:x";
/** Within the 0.1 % that the freshness of a push relies on; a slow clock believes for longer. */
const RATE = 0.9995;

/** Client rules that can be left out, to see that the search finds what they are for. */
const BREAKAGES = [
  "the deadline counts from the answer",
  "no margin for the clock",
  "a release leaves no tombstone",
  "every push is believed",
  "a handed-off grant needs no confirm",
  "a lease that is gone goes on",
  "a waiter sends no heartbeat",
] as const;

export type ClientBreakage = (typeof BREAKAGES)[number];

export function isClientBreakage(text: string | null): text is ClientBreakage {
  return BREAKAGES.some((breakage) => breakage === text);
}

/** The next request of the client. */
export type Sending = Sent | null;

export class LedgerClient {
  readonly #requests: Readonly<Record<string, Request>>;
  readonly #broken: ClientBreakage | null;
  readonly #time = new ClockBounds();

  constructor(requests: Readonly<Record<string, Request>>, broken: ClientBreakage | null) {
    this.#requests = requests;
    this.#broken = broken;
    this.#time.learn("", 0, 0, 0);
  }

  nowMs({ tick }: LedgerScene): number {
    return tick * TICK_MS * RATE;
  }

  /** Rule 2: the clock decides, not a flag. */
  believes(scene: LedgerScene, owner: OwnerSide): boolean {
    return owner.phase === "held" && this.nowMs(scene) < owner.deadlineMs;
  }

  /** Rule 4: a request says until when it may act; a repeated one leaves the first in doubt. */
  ask(scene: LedgerScene, owner: OwnerSide): Sending {
    const notAfterUs = this.#time.storeUs(this.nowMs(scene) + TTL_MS);
    if (owner.isUnderWay) owner.mayStillArrive = true;
    owner.phase = "asking";
    owner.asks += 1;
    owner.isUnderWay = true;
    owner.confirming = 0;
    owner.notAfterUs = Math.max(owner.notAfterUs, notAfterUs);
    const { id, client } = owner;
    const mates = scene.owners.filter((one) => one.client === client);
    const command: Acquire = {
      type: "acquire",
      key: KEY,
      owner: id,
      client,
      ...(this.#requests[id] as Request),
      ttlUs: TTL_MS * 1000,
      span: 1,
      meta: "",
      enqueue: true,
      offerUs: OFFER_MS * 1000,
      heartbeatUs: OFFER_MS * 1000,
      notAfterUs,
      seenToken: Math.max(...mates.map(({ token }) => token)),
    };
    return { ...this.#sent(scene, owner, command), ask: owner.asks };
  }

  /** Rule 2: never after the own deadline. */
  renew(scene: LedgerScene, owner: OwnerSide): Sending {
    owner.renewals += 1;
    const notAfterUs = this.#time.storeUs(owner.deadlineMs);
    const terms = { ttlUs: TTL_MS * 1000, notAfterUs, seenToken: owner.token };
    return this.#sent(scene, owner, { type: "renew", key: KEY, owner: owner.id, ...terms });
  }

  /** Rule 4: an owner that ends is released, with a tombstone where a copy may be under way. */
  leave(scene: LedgerScene, owner: OwnerSide): Sending {
    const { id, mayStillArrive, isUnderWay, phase } = owner;
    if (phase !== "left") {
      const needsTombstone = mayStillArrive || isUnderWay;
      owner.phase = "left";
      owner.isQueued = false;
      if (!owner.hasEntered && !needsTombstone) return null;
      const leavesTombstone = needsTombstone && this.#broken !== "a release leaves no tombstone";
      owner.tombstoneUs = leavesTombstone ? owner.notAfterUs + 1 : 0;
    }
    owner.isLeaving = true;
    const { tombstoneUs } = owner;
    const command = { type: "release", key: KEY, owner: id, tombstoneUs, keep: null } as const;
    return this.#sent(scene, owner, command);
  }

  /** "No wait hangs on a message alone." */
  heartbeat(scene: LedgerScene, client: string): Sending {
    const waiting = this.waiting(scene, client);
    if (waiting.length === 0 || this.#broken === "a waiter sends no heartbeat") return null;
    scene.heartbeatAt[client] = scene.tick;
    const command = { type: "heartbeat", key: KEY, client } as const;
    const sentMs = this.nowMs(scene);
    return { command, client, sentMs, ask: 0, waiting, isResent: false };
  }

  waiting(scene: LedgerScene, client: string): string[] {
    const queued = scene.owners.filter((one) => one.client === client && one.isQueued);
    return queued.filter(({ phase }) => phase === "asking").map(({ id }) => id);
  }

  onMessage(scene: LedgerScene, message: Exclude<Message, { type: "request" }>): Sending[] {
    if (message.type === "answer") return this.#onAnswer(scene, message);
    const { push } = message;
    if (push.type === "marked") return [];
    const owner = scene.owner(push.type === "granted" ? push.grant.owner : push.owner);
    if (!owner) return [];
    if (push.type === "granted") return [this.#onPush(scene, owner, push.grant)];
    const isMine = owner.phase === "held" && owner.token === push.token;
    return [owner.phase === "asking" || isMine ? this.leave(scene, owner) : null];
  }

  #onAnswer(scene: LedgerScene, { sent, reply, nowUs }: Message & { type: "answer" }): Sending[] {
    const { command } = sent;
    if (command.type === "heartbeat")
      return this.#onHeartbeatReply(scene, sent, reply as HeartbeatReply, nowUs);
    const owner = "owner" in command ? scene.owner(command.owner) : undefined;
    if (!owner) return [];
    if (command.type === "acquire") return [this.#onAcquired(scene, owner, sent, reply)];
    if (command.type === "release") owner.isLeaving = false;
    if (command.type === "confirm") return [this.#onConfirmed(scene, owner, sent, reply)];
    if (command.type === "renew") return [this.#onRenewed(scene, owner, sent, reply)];
    return [];
  }

  #onAcquired(scene: LedgerScene, owner: OwnerSide, sent: Sent, reply: Reply): Sending {
    if (sent.ask !== owner.asks) return null;
    owner.isUnderWay = false;
    if (sent.isResent) owner.mayStillArrive = true;
    if (owner.phase !== "asking") return null;
    if (reply.type === "granted") {
      return this.#accept(scene, owner, reply.token, this.#deadline(scene, sent, reply));
    }
    if (reply.type === "queued") {
      owner.hasEntered = true;
      owner.isQueued = true;
    }
    return reply.type === "stale" && reply.reason === "ended" ? this.leave(scene, owner) : null;
  }

  /** "Handoff": believed at once only where it is fresh; otherwise the confirm decides. */
  #onPush(scene: LedgerScene, owner: OwnerSide, grant: PushedGrant): Sending {
    if (owner.phase === "left") return this.leave(scene, owner);
    const fresh = this.#time.believe(grant, this.nowMs(scene));
    const isBelieved = this.#broken === "every push is believed";
    return this.#claim(scene, owner, grant, isBelieved ? this.nowMs(scene) + OFFER_MS : fresh);
  }

  #claim(
    scene: LedgerScene,
    owner: OwnerSide,
    grant: PushedGrant,
    untilMs: number | null,
  ): Sending {
    if (owner.phase !== "asking" || owner.confirming === grant.token) return null;
    owner.confirming = grant.token;
    owner.hasEntered = true;
    if (this.#broken === "a handed-off grant needs no confirm") {
      return this.#accept(scene, owner, grant.token, this.nowMs(scene) + TTL_MS);
    }
    const command: Confirm = { type: "confirm", key: KEY, owner: owner.id };
    const confirm = this.#sent(scene, owner, command);
    const isBelieved = untilMs !== null && untilMs > this.nowMs(scene);
    if (isBelieved) this.#accept(scene, owner, grant.token, untilMs);
    return { ...confirm, ask: grant.token };
  }

  /** The answer to a heartbeat tells of grants whose push was lost, and of places that are lost. */
  #onHeartbeatReply(
    scene: LedgerScene,
    sent: Sent,
    reply: HeartbeatReply,
    nowUs: number,
  ): Sending[] {
    const sendings = reply.grants.map((grant) => {
      const owner = scene.owner(grant.owner);
      if (!owner) return null;
      if (owner.phase === "left") return this.leave(scene, owner);
      const lengthMs = (grant.expiryUs - grant.grantedUs) / 1000;
      const untilMs = sent.sentMs + (grant.expiryUs - nowUs) / 1000 - marginMs(lengthMs);
      return this.#claim(scene, owner, grant, untilMs);
    });
    const waiting = this.waiting(scene, sent.client);
    const isSame = sent.waiting.join() === waiting.join() && reply.grants.length === 0;
    if (!isSame || reply.waiting >= waiting.length) return sendings;
    return waiting.map((id) => this.ask(scene, scene.owner(id) as OwnerSide));
  }

  #onConfirmed(scene: LedgerScene, owner: OwnerSide, sent: Sent, reply: Reply): Sending {
    const isThere = reply.type === "renewed";
    if (owner.phase === "held" && owner.token === sent.ask) {
      return this.#onRenewed(scene, owner, sent, reply);
    }
    if (owner.phase !== "asking" || owner.confirming !== sent.ask) return null;
    if (!isThere) return this.ask(scene, owner);
    return this.#accept(scene, owner, reply.token, this.#deadline(scene, sent, reply));
  }

  /** Rules 1 and 3: a renewal never shortens, and only "gone" ends a lease before its deadline. */
  #onRenewed(scene: LedgerScene, owner: OwnerSide, sent: Sent, reply: Reply): Sending {
    if (owner.phase !== "held") return null;
    const goesOn = this.#broken === "a lease that is gone goes on";
    if (reply.type === "gone") return goesOn ? null : this.leave(scene, owner);
    if (reply.type !== "renewed") return null;
    if (reply.token !== owner.token) return this.leave(scene, owner);
    owner.deadlineMs = Math.max(owner.deadlineMs, this.#deadline(scene, sent, reply));
    return null;
  }

  /** Rule 1: a grant past its deadline is given back, never returned. */
  #accept(scene: LedgerScene, owner: OwnerSide, token: number, deadlineMs: number): Sending {
    owner.hasEntered = true;
    if (this.nowMs(scene) >= deadlineMs) return this.leave(scene, owner);
    Object.assign(owner, { phase: "held", isQueued: false, token, deadlineMs });
    return null;
  }

  /** Rule 1: counted from just before the request was sent. */
  #deadline(
    scene: LedgerScene,
    { sentMs }: Sent,
    { remainingUs }: { remainingUs: number },
  ): number {
    const isLate = this.#broken === "the deadline counts from the answer";
    const fromMs = isLate ? this.nowMs(scene) : sentMs;
    if (this.#broken === "no margin for the clock") return fromMs + remainingUs / 1000;
    return deadlineOf(fromMs, remainingUs / 1000, TTL_MS);
  }

  #sent(scene: LedgerScene, { client }: OwnerSide, command: Command): Sent {
    const sentMs = this.nowMs(scene);
    return { command, client, sentMs, ask: 0, waiting: [], isResent: false };
  }
}
