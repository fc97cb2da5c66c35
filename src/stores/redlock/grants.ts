import type { Claim, Loss } from "../../contract/store.js";
import { StoreGrant } from "../../contract/store-grant.js";
import { list } from "../../events/foreign-data.js";
import { preventsMajority } from "../../rules/majority.js";
import { parseRecord, spanOf } from "./protocol.js";
import type { RedlockNode } from "./quorum.js";

/** The votes of a majority for one owner at one ballot, which is the first token of the grant. */
export class QuorumGrant extends StoreGrant {
  readonly span: number;
  readonly locator = null;
  readonly token: bigint;
  readonly keys: readonly string[];
  isReleased = false;
  /** The nodes that reported the end of the lease, each with the reason of a revocation or null. */
  readonly lostAt: Map<number, string | null> = new Map();

  constructor(claim: Claim, keys: readonly string[], ballot: number, deadlineMs: number) {
    super(claim, deadlineMs);
    this.keys = keys;
    this.span = spanOf(claim);
    this.token = BigInt(ballot);
  }
}

/** A node has ended the lease with this token. */
interface Revocation {
  readonly at: number;
  readonly token: string;
  readonly reason: string;
}

/** An owner whose votes are not counted yet. */
interface Expected {
  readonly keys: readonly string[];
  readonly revocations: Revocation[];
}

/** The grants of this client. Watches what the nodes report about them without being asked. */
export class Grants {
  readonly #nodes: readonly RedlockNode[];
  readonly #grants = new Map<string, QuorumGrant>();
  readonly #expected = new Map<string, Expected>();

  constructor(nodes: readonly RedlockNode[]) {
    this.#nodes = nodes;
  }

  /**
   * Called before votes are asked for: a revocation of this owner may arrive before they are
   * counted.
   */
  expect(owner: string, keys: readonly string[]): void {
    this.#expected.set(owner, { keys, revocations: [] });
  }

  /** No votes for this owner count any more. */
  giveUp(owner: string): void {
    this.#expected.delete(owner);
  }

  /** The grant may have ended already, by revocations that came first. */
  add(grant: QuorumGrant): void {
    const { owner } = grant.claim;
    this.#grants.set(owner, grant);
    const { revocations = [] } = this.#expected.get(owner) ?? {};
    this.#expected.delete(owner);
    for (const { at, token, reason } of revocations) this.onRevoked(at, owner, token, reason);
  }

  remove(grant: QuorumGrant): void {
    const { owner } = grant.claim;
    // This client may have resumed the grant: then its owner has another one.
    if (this.#grants.get(owner) === grant) this.#grants.delete(owner);
  }

  /** Checks every grant at one node, whose messages were lost while there was no subscription. */
  lookAfterAll(at: number): void {
    for (const grant of this.#grants.values()) void this.#lookAfter(grant, at);
  }

  /** Looks at one grant at all nodes. */
  lookAfter(grant: QuorumGrant): void {
    for (const at of this.#nodes.keys()) void this.#lookAfter(grant, at);
  }

  onRevoked(at: number, owner: string, token: string, reason: string): void {
    const grant = this.#grants.get(owner);
    if (grant?.hasToken(BigInt(token))) this.#onLost(grant, at, reason);
    if (!grant) this.#expected.get(owner)?.revocations.push({ at, token, reason });
  }

  /** This client has ended the lease with this token, if it is one of its own: at all nodes. */
  onOwnRevoke(keys: readonly string[], token: bigint, reason: string): void {
    const owners = [...this.#grants.values()]
      .filter((grant) => areEqual(grant.keys, keys))
      .map(({ claim }) => claim.owner);
    for (const [owner, expected] of this.#expected) {
      if (areEqual(expected.keys, keys)) owners.push(owner);
    }
    for (const owner of owners) {
      for (const at of this.#nodes.keys()) this.onRevoked(at, owner, `${token}`, reason);
    }
  }

  /** The grant no longer has a majority. */
  lose(grant: QuorumGrant, reason: Loss["reason"], detail: string): void {
    this.remove(grant);
    grant.end({ reason, detail });
  }

  async #lookAfter(grant: QuorumGrant, at: number): Promise<void> {
    try {
      const raw = await this.#nodes[at]?.ask(grant.keys, ["look"]);
      const [, value, text] = list(raw).map(String);
      const { owner } = grant.claim;
      const [, revoked, reason = ""] = /^\d+ V (\S+) (.*)$/s.exec(text ?? "") ?? [];
      if (revoked === owner) return this.#onLost(grant, at, reason);
      // The record of a later holder replaces the mark of a revocation, and a later holder never
      // gives the node back to this grant.
      const record = parseRecord(text ?? "");
      const isOther = record !== null && record.value === value && value !== owner;
      if (isOther && record.token > grant.token) this.#onLost(grant, at, null);
    } catch {
      // A look that fails proves nothing: the next renewal asks again.
    }
  }

  /** Ends the grant when too many nodes have lost it for a majority. */
  #onLost(grant: QuorumGrant, at: number, reason: string | null): void {
    const { lostAt } = grant;
    lostAt.set(at, reason ?? lostAt.get(at) ?? null);
    if (!preventsMajority(lostAt.size, this.#nodes.length)) return;
    const known = [...lostAt.values()].find((one) => one !== null);
    if (known === undefined) this.lose(grant, "replaced", "");
    else this.lose(grant, "revoked", known ?? "");
  }
}

function areEqual(a: readonly string[], b: readonly string[]): boolean {
  return a.every((key, at) => key === b[at]);
}
