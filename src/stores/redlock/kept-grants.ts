import type { GoneEvent } from "../../store.js";
import { majorityOf } from "./ballot.js";
import { parseRecord } from "./name-record.js";
import type { RedlockGrant } from "./redlock-grant.js";
import type { RedlockNode } from "./redlock-node.js";

/** The grants of this client, and what its nodes tell of them unasked. */
export class KeptGrants {
  readonly #nodes: readonly RedlockNode[];
  readonly #onGone: (event: GoneEvent) => void;
  readonly #grants = new Map<string, RedlockGrant>();

  constructor(nodes: readonly RedlockNode[], onGone: (event: GoneEvent) => void) {
    this.#nodes = nodes;
    this.#onGone = onGone;
  }

  add(grant: RedlockGrant): void {
    this.#grants.set(grant.claim.owner, grant);
  }

  remove(grant: RedlockGrant): void {
    this.#grants.delete(grant.claim.owner);
  }

  /** What a node told while it was out of hearing is not known. */
  lookAfterAll(at: number): void {
    for (const grant of this.#grants.values()) void this.#lookAfter(grant, at);
  }

  /** The same for one grant, at all nodes. */
  lookAfter(grant: RedlockGrant): void {
    for (const at of this.#nodes.keys()) void this.#lookAfter(grant, at);
  }

  onRevoked(at: number, owner: string, token: string, reason: string): void {
    const grant = this.#grants.get(owner);
    if (grant?.token === BigInt(token)) this.#onLost(grant, at, reason);
  }

  async #lookAfter(grant: RedlockGrant, at: number): Promise<void> {
    try {
      const raw = await this.#nodes[at]?.ask(grant.keys, ["look"]);
      const [, value, text] = (raw as readonly unknown[]).map(String);
      const { owner } = grant.claim;
      const [, revoked, reason = ""] = /^\d+ V (\S+) (.*)$/s.exec(text ?? "") ?? [];
      if (revoked === owner) return this.#onLost(grant, at, reason);
      // Whoever came after us covers the mark of a revocation, and never gives the node back.
      const record = parseRecord(text ?? "");
      const isOther = record !== null && record.value === value && value !== owner;
      if (isOther && record.token > grant.token) this.#onLost(grant, at, null);
    } catch {
      // It was only a look: renewals ask, too.
    }
  }

  /** Told by so many nodes that it has no majority any more. */
  #onLost(grant: RedlockGrant, at: number, reason: string | null): void {
    const { claim, lostAt } = grant;
    if (this.#grants.get(claim.owner) !== grant) return;
    lostAt.set(at, reason ?? lostAt.get(at) ?? null);
    const { length } = this.#nodes;
    if (lostAt.size <= length - majorityOf(length)) return;
    this.#grants.delete(claim.owner);
    const known = [...lostAt.values()].find((one) => one !== null);
    const loss =
      known === undefined
        ? ({ reason: "replaced", detail: "" } as const)
        : ({ reason: "revoked", detail: known ?? "" } as const);
    this.#onGone({ type: "gone", grant, ...loss });
    // The acquisition may be so fresh that nobody keeps it yet.
    grant.deadlineMs = Number.NEGATIVE_INFINITY;
  }
}
