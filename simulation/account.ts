import type { Acquire, Command, Instant, Push, Reply } from "../src/rules/ledger-command.js";
import { splitKey } from "../src/rules/name.js";
import { SILENT_PERIODS } from "../src/rules/upkeep.js";
import type { History } from "./history.js";

interface Offer {
  readonly client: string;
  readonly token: number;
  readonly expiryUs: number;
}

/** A client with places in a queue: when it loses them, and how often it promised to speak. */
interface WaitingClient {
  readonly id: string;
  heartbeatUs: number;
  goneUs: number;
}

const CONFIRMING = new Set<Reply["type"]>(["granted", "renewed", "released"]);

/** The name of a lock in a history, with its space where that is not "lock". */
export function nameOf(key: string): string {
  const { space, name } = splitKey(key);
  return space === "lock" ? name : `${space} ${name}`;
}

/** Records the actions of the store, as its commands, replies and pushes show them. */
export class Account {
  readonly #history: History;
  readonly #granted = new Set<string>();
  /** Offers: handed-off grants that are not confirmed yet, by name and owner. */
  readonly #offers = new Map<string, Map<string, Offer>>();
  /** The clients of all waiters, by name and owner. */
  readonly #places = new Map<string, Map<string, WaitingClient>>();
  readonly #unresponsive = new Map<string, Set<string>>();

  constructor(history: History) {
    this.#history = history;
  }

  /** A lapsed offer marks its client unresponsive, until the next command of the client. */
  before(nowMs: number, at: Instant, command: Command): void {
    const name = nameOf(command.key);
    const offers = this.#offers.get(name);
    for (const [owner, { client, expiryUs }] of offers ?? []) {
      if (expiryUs > at.us) continue;
      offers?.delete(owner);
      this.#passOver(nowMs, name, client);
    }
    this.#dropSilent(nowMs, at, name);
    if ("client" in command) this.#hear(at, name, command.client);
    if ("client" in command && this.#unresponsive.get(name)?.delete(command.client)) {
      this.#history.record(nowMs, { type: "responsive", name, client: command.client });
    }
  }

  after(nowMs: number, at: Instant, command: Command, reply: Reply): void {
    const name = nameOf(command.key);
    // A command that was refused as too late confirms nothing; only the first command about an
    // offer extends it.
    const confirms = CONFIRMING.has(reply.type) && "owner" in command;
    const wasOffer = confirms && this.#offers.get(name)?.delete(command.owner);
    switch (reply.type) {
      case "granted":
        if (command.type !== "acquire") return;
        if (wasOffer) return this.#extended(nowMs, name, reply);
        if (this.#granted.has(`${command.owner} ${reply.token}`)) return;
        return this.#grant(nowMs, at, name, command, reply, false);
      case "renewed":
        if (wasOffer || command.type === "renew") this.#extended(nowMs, name, reply);
        return;
      case "queued": {
        if (command.type !== "acquire" || reply.ahead === null) return;
        return this.#queue(nowMs, at, name, command);
      }
      case "released": {
        if (command.type !== "release") return;
        const { owner, tombstoneUs } = command;
        const buriedMs = tombstoneUs > 0 ? (tombstoneUs - at.us) / 1000 : 0;
        this.#places.get(name)?.delete(owner);
        return this.#history.record(nowMs, { type: "withdrawn", name, owner, buriedMs });
      }
      case "revoked": {
        if (command.type !== "revoke" || !reply.done) return;
        for (const [owner, offer] of this.#offers.get(name) ?? []) {
          if (offer.token === command.token) this.#offers.get(name)?.delete(owner);
        }
        const token = BigInt(command.token);
        return this.#history.record(nowMs, { type: "revoked", name, token });
      }
    }
  }

  pushed(nowMs: number, at: Instant, name: string, push: Push, isSent: boolean): void {
    // The mark of a `once` ends the wait, whether or not the client hears of it.
    if (push.type === "marked") return this.#drop(nowMs, name, push.owner);
    if (push.type !== "granted") return;
    const { client, grant } = push;
    if (!isSent) return this.#passOver(nowMs, name, client);
    const { owner, token, span, expiryUs } = grant;
    const offered = { token, span, remainingUs: expiryUs - at.us };
    this.#grant(nowMs, at, name, { owner, client }, offered, true);
    const offers = this.#offers.get(name) ?? new Map<string, Offer>();
    this.#offers.set(name, offers.set(owner, { client, token, expiryUs }));
  }

  forget(): void {
    this.#granted.clear();
    this.#offers.clear();
    this.#places.clear();
    this.#unresponsive.clear();
  }

  #grant(
    nowMs: number,
    at: Instant,
    name: string,
    { owner, client }: { owner: string; client: string },
    { token, span, remainingUs }: { token: number; span: number; remainingUs: number },
    isHandoff: boolean,
  ): void {
    this.#granted.add(`${owner} ${token}`);
    this.#places.get(name)?.delete(owner);
    const clockUs = at.wallUs;
    this.#history.record(nowMs, {
      type: "granted",
      name,
      owner,
      client,
      token: BigInt(token),
      span,
      isHandoff,
      remainingMs: remainingUs / 1000,
      clockUs,
    });
  }

  /** An owner that asks again keeps its place. */
  #queue(nowMs: number, at: Instant, name: string, { owner, client, heartbeatUs }: Acquire): void {
    const places = this.#places.get(name) ?? new Map<string, WaitingClient>();
    this.#places.set(name, places);
    if (places.has(owner)) return;
    const known = [...places.values()].find(({ id }) => id === client);
    const waiting = known ?? { id: client, heartbeatUs, goneUs: 0 };
    waiting.heartbeatUs = Math.max(waiting.heartbeatUs, heartbeatUs);
    waiting.goneUs = Math.max(waiting.goneUs, at.us + SILENT_PERIODS * heartbeatUs);
    places.set(owner, waiting);
    this.#history.record(nowMs, { type: "queued", name, owner, client });
  }

  /** Clients that were silent for too long lose their places. */
  #dropSilent(nowMs: number, at: Instant, name: string): void {
    const places = this.#places.get(name) ?? new Map<string, WaitingClient>();
    const silent = [...places].filter(([, { goneUs }]) => goneUs <= at.us);
    for (const [owner] of silent) this.#drop(nowMs, name, owner);
  }

  #drop(nowMs: number, name: string, owner: string): void {
    this.#places.get(name)?.delete(owner);
    this.#history.record(nowMs, { type: "dropped", name, owner });
  }

  #hear(at: Instant, name: string, client: string): void {
    for (const waiting of this.#places.get(name)?.values() ?? []) {
      if (waiting.id === client) waiting.goneUs = at.us + SILENT_PERIODS * waiting.heartbeatUs;
    }
  }

  #extended(
    nowMs: number,
    name: string,
    { token, remainingUs }: { readonly token: number; readonly remainingUs: number },
  ): void {
    const remainingMs = remainingUs / 1000;
    this.#history.record(nowMs, { type: "extended", name, token: BigInt(token), remainingMs });
  }

  #passOver(nowMs: number, name: string, client: string): void {
    const clients = this.#unresponsive.get(name) ?? new Set();
    this.#unresponsive.set(name, clients);
    if (clients.has(client)) return;
    clients.add(client);
    this.#history.record(nowMs, { type: "unresponsive", name, client });
  }
}
