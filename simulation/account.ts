import type { Command, Instant, Push, Reply } from "../src/rules/ledger-command.js";
import { splitKey } from "../src/rules/name.js";
import type { History } from "./history.js";

interface Claim {
  readonly client: string;
  readonly token: number;
  readonly expiryUs: number;
}

const CONFIRMING = new Set<Reply["type"]>(["granted", "renewed", "released"]);

/** The name of a lock in a history: elections and the like are told apart by their kind. */
export function nameOf(key: string): string {
  const { space, name } = splitKey(key);
  return space === "lock" ? name : `${space} ${name}`;
}

/** What the store did, told from its commands, replies and pushes alone. */
export class Account {
  readonly #history: History;
  readonly #granted = new Set<string>();
  /** Handed-off grants that nobody has confirmed yet, by name and owner. */
  readonly #claims = new Map<string, Map<string, Claim>>();
  readonly #suspects = new Map<string, Set<string>>();

  constructor(history: History) {
    this.#history = history;
  }

  /** Lapsed claims make their clients suspect; a word of a client clears it. */
  before(nowMs: number, at: Instant, command: Command): void {
    const name = nameOf(command.key);
    const claims = this.#claims.get(name);
    for (const [owner, { client, expiryUs }] of claims ?? []) {
      if (expiryUs > at.us) continue;
      claims?.delete(owner);
      this.#suspect(nowMs, name, client);
    }
    if ("client" in command && this.#suspects.get(name)?.delete(command.client)) {
      this.#history.record(nowMs, { type: "cleared", name, client: command.client });
    }
  }

  after(nowMs: number, at: Instant, command: Command, reply: Reply): void {
    const name = nameOf(command.key);
    // What was refused as too late confirms nothing, and only the first word about a claim extends
    // it.
    const confirms = CONFIRMING.has(reply.type) && "owner" in command;
    const wasClaim = confirms && this.#claims.get(name)?.delete(command.owner);
    switch (reply.type) {
      case "granted":
        if (command.type !== "acquire") return;
        if (wasClaim) return this.#extended(nowMs, name, reply.token);
        if (this.#granted.has(`${command.owner} ${reply.token}`)) return;
        return this.#grant(nowMs, at, name, command, reply, false);
      case "renewed":
        if (wasClaim || command.type === "renew") this.#extended(nowMs, name, reply.token);
        return;
      case "queued": {
        if (command.type !== "acquire" || reply.ahead === null) return;
        const { owner, client } = command;
        return this.#history.record(nowMs, { type: "queued", name, owner, client });
      }
      case "released": {
        if (command.type !== "release") return;
        const { owner, tombstoneUs } = command;
        const isBuried = tombstoneUs > at.us;
        return this.#history.record(nowMs, { type: "withdrawn", name, owner, isBuried });
      }
      case "revoked": {
        if (command.type !== "revoke" || !reply.done) return;
        for (const [owner, claim] of this.#claims.get(name) ?? []) {
          if (claim.token === command.token) this.#claims.get(name)?.delete(owner);
        }
        const token = BigInt(command.token);
        return this.#history.record(nowMs, { type: "revoked", name, token });
      }
    }
  }

  pushed(nowMs: number, at: Instant, name: string, push: Push, isSent: boolean): void {
    if (push.type !== "granted") return;
    const { client, grant } = push;
    if (!isSent) return this.#suspect(nowMs, name, client);
    this.#grant(nowMs, at, name, { owner: grant.owner, client }, grant, true);
    const claims = this.#claims.get(name) ?? new Map<string, Claim>();
    const { owner, token, expiryUs } = grant;
    this.#claims.set(name, claims.set(owner, { client, token, expiryUs }));
  }

  forget(): void {
    this.#granted.clear();
    this.#claims.clear();
    this.#suspects.clear();
  }

  #grant(
    nowMs: number,
    at: Instant,
    name: string,
    { owner, client }: { owner: string; client: string },
    { token, span }: { token: number; span: number },
    isHandoff: boolean,
  ): void {
    this.#granted.add(`${owner} ${token}`);
    const clockUs = at.wallUs;
    this.#history.record(nowMs, {
      type: "granted",
      name,
      owner,
      client,
      token: BigInt(token),
      span,
      isHandoff,
      clockUs,
    });
  }

  #extended(nowMs: number, name: string, token: number): void {
    this.#history.record(nowMs, { type: "extended", name, token: BigInt(token) });
  }

  #suspect(nowMs: number, name: string, client: string): void {
    const suspects = this.#suspects.get(name) ?? new Set();
    this.#suspects.set(name, suspects);
    if (suspects.has(client)) return;
    suspects.add(client);
    this.#history.record(nowMs, { type: "suspected", name, client });
  }
}
