import type { Command, Push, Reply } from "../../src/rules/ledger-command.js";
import { PlainState } from "../../test/fixtures/plain-state.js";

/** The knowledge of a client about one of its owners. */
export interface OwnerSide {
  readonly id: string;
  readonly client: string;
  phase: "idle" | "asking" | "held" | "left";
  /** How often it asked; answers to earlier requests count as timed out. */
  asks: number;
  renewals: number;
  isUnderWay: boolean;
  /** A copy of an earlier request may still arrive. */
  mayStillArrive: boolean;
  hasEntered: boolean;
  isQueued: boolean;
  notAfterUs: number;
  /** The token whose confirm is under way. */
  confirming: number;
  token: number;
  deadlineMs: number;
  /** Its release has no answer yet. */
  isLeaving: boolean;
  tombstoneUs: number;
}

/** A command on its way to the store, with what its sender remembers of it. */
export interface Sent {
  readonly command: Command;
  readonly client: string;
  readonly sentMs: number;
  readonly ask: number;
  /** The owners that waited when a heartbeat was sent. */
  readonly waiting: readonly string[];
  readonly isResent: boolean;
}

export type Message =
  | { readonly type: "request"; readonly sent: Sent }
  | {
      readonly type: "answer";
      readonly sent: Sent;
      readonly reply: Reply;
      readonly nowUs: number;
    }
  | { readonly type: "push"; readonly push: Push };

/** How much may happen in a scene. */
export interface Budget {
  ticks: number;
  /** Messages that are late, lost or doubled. */
  faults: number;
  asks: number;
  renewals: number;
  revokes: number;
}

/** The store, the clients and what is between them, at one moment. */
export class LedgerScene {
  tick = 0;
  ledger: PlainState = new PlainState("l:x");
  owners: OwnerSide[] = [];
  /** For each client, when it last sent a heartbeat. */
  heartbeatAt: Record<string, number> = {};
  crashed = "";
  net: Message[] = [];
  budget: Budget;
  isCalm = false;
  /** The owners in the order in which they came to wait. */
  queue: readonly string[] = [];
  /** Owners whose release the store has executed. */
  departed: readonly string[] = [];
  /** Owners whose grant was revoked. */
  revoked: readonly string[] = [];
  highestToken = 0;
  wrong: string | null = null;

  constructor(budget: Budget) {
    this.budget = budget;
  }

  copy(): LedgerScene {
    const copy = new LedgerScene({ ...this.budget });
    Object.assign(copy, this, { budget: copy.budget });
    copy.ledger = this.ledger.copy();
    copy.owners = this.owners.map((owner) => ({ ...owner }));
    copy.heartbeatAt = { ...this.heartbeatAt };
    copy.net = [...this.net];
    return copy;
  }

  owner(id: string): OwnerSide | undefined {
    return this.owners.find((owner) => owner.id === id);
  }

  /**
   * Two owners of one client that have asked for the same are alike: no rule compares the names of
   * owners, so a scene and the one with the two exchanged have the same future. The owners are
   * called by their order among equals; where two are equal, either order is right.
   */
  key(kindOf: (owner: string) => string): string {
    const { ledger } = this;
    const signed = this.owners.map((owner) => {
      const { id } = owner;
      const place = ledger.tombstones().findIndex((one) => one.owner === id);
      const there = `${this.queue.indexOf(id)} ${place} ${ledger.holder(id)?.expiryUs}`;
      return { id, text: `${kindOf(id)} ${textOf(owner)} ${there}` };
    });
    signed.sort((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
    const names = new Map(signed.map(({ id }, index) => [id, index]));
    const name = (id: string): number => names.get(id) as number;
    const { ticks, faults, revokes } = this.budget;
    let key = `${this.tick} ${ticks} ${faults} ${revokes} ${this.isCalm} ${this.crashed}`;
    for (const { text } of signed) key += `|${text}`;
    key += `|${ledger.lastToken()} ${this.highestToken}`;
    for (const { owner, token, expiryUs, confirmed } of ledger.holders()) {
      key += `|h${name(owner)} ${token} ${expiryUs} ${confirmed}`;
    }
    for (const { owner } of ledger.waiters()) key += `|w${name(owner)}`;
    for (const client of Object.keys(this.heartbeatAt)) {
      const known = ledger.client(client);
      key += `|c${this.heartbeatAt[client] === this.tick} ${known?.goneUs} ${known?.unresponsive}`;
    }
    for (const { owner, untilUs } of ledger.tombstones()) key += `|t${name(owner)} ${untilUs}`;
    for (const owner of this.queue) key += `|q${name(owner)}`;
    key += `|d${this.departed.map(name).sort()}|r${this.revoked.map(name).sort()}|`;
    // Messages overtake each other, so their order means nothing.
    return (
      key +
      this.net
        .map((message) => messageText(message, name))
        .sort()
        .join("|")
    );
  }
}

/** The part of an owner that can still matter; the rest is left out. */
function textOf(owner: OwnerSide): string {
  const { client, phase, asks, renewals, isUnderWay, mayStillArrive, hasEntered, isQueued } = owner;
  const { notAfterUs, confirming, token, deadlineMs, isLeaving, tombstoneUs } = owner;
  const untilUs = mayStillArrive || isUnderWay ? ` ${notAfterUs}` : "";
  if (phase === "left") return `${client}left${+isLeaving}${token} ${tombstoneUs}`;
  const text = `${client}${phase}${+isUnderWay}${+mayStillArrive}${token}${untilUs}`;
  if (phase === "asking") return `${text} ${asks} ${+hasEntered}${+isQueued}${confirming}`;
  return phase === "held" ? `${text} ${asks} ${renewals} ${deadlineMs}` : text;
}

function messageText(message: Message, name: (id: string) => number): string {
  if (message.type === "push") {
    const { push } = message;
    if (push.type !== "granted") return `${push.type}${name(push.owner)} ${push.token}`;
    const { owner, token, expiryUs } = push.grant;
    return `push${name(owner)} ${token} ${expiryUs}`;
  }
  const { command, sentMs, client, ask, isResent, waiting } = message.sent;
  const who = "owner" in command ? name(command.owner) : client;
  const text = `${message.type}${command.type}${who} ${sentMs} ${ask} ${isResent}`;
  const until = "notAfterUs" in command ? command.notAfterUs : 0;
  const tombstone = command.type === "release" ? command.tombstoneUs : 0;
  if (message.type === "request") return `${text} ${until} ${tombstone} ${waiting.map(name)}`;
  const { reply, nowUs } = message;
  if (reply.type !== "heartbeat") return `${text} ${JSON.stringify(reply)}`;
  const grants = reply.grants.map(({ owner, token, expiryUs }) => [name(owner), token, expiryUs]);
  return `${text} ${nowUs} ${reply.waiting} ${grants} ${waiting.map(name)}`;
}
