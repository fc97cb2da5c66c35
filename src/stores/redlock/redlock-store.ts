/** A store over independent nodes: asks all of them, and believes what a majority says. */
import { ClosedError, type StoreError } from "../../errors.js";
import { keyOf, type Space } from "../../rules/name.js";
import type {
  Busy,
  Claim,
  GoneEvent,
  Grant,
  LockView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
} from "../../store.js";
import { networkPort, type Port } from "../../time/port.js";
import { Acquisition } from "./acquisition.js";
import { explainVotes } from "./failure.js";
import { Inspection } from "./inspection.js";
import { KeptGrants } from "./kept-grants.js";
import { Membership } from "./membership.js";
import type { RedlockGrant } from "./redlock-grant.js";
import { RedlockKeys } from "./redlock-keys.js";
import type { RedlockNode } from "./redlock-node.js";
import { Releases } from "./releases.js";
import { Renewals } from "./renewals.js";
import { releaseArgs, setIdOf } from "./requests.js";
import { SeenBallots } from "./seen-ballots.js";
import type { Surroundings } from "./surroundings.js";
import type { Failure, NodeRenewal, Vote } from "./vote.js";
import { WakeUps } from "./wake-ups.js";
import { Withdrawals } from "./withdrawals.js";

export const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive"],
  fifo: false,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 100,
  exclusiveBecause: "its nodes agree on one holder by majority, not on how many share a lock",
};

/** A node time-out is at most this part of the ttl, so that a round leaves most of the lease. */
const LIMIT_PART = 5;
const LONGEST_LIMIT_MS = 1_000;
/** Long enough to come and vote, also on a busy machine. */
const RESERVE_TIMEOUTS = 4;
/** A node that is slow once in its life is not left out for that. */
const SURVEY_TIMEOUTS = 5;

/** Leases that are longer than `maxTtlMs` are announced anew after this time. */
const ANNOUNCE_MS = 3_600_000;

export interface RedlockSettings {
  readonly namespace: string;
  readonly nodeTimeoutMs: number;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  /** For how long nodes know of longer leases, once they were told of them. Default: an hour. */
  readonly announceMs?: number;
  readonly bootstrap: "wait" | "now";
  /** Closes the clients, where they are ours. */
  readonly onClose?: () => Promise<unknown>;
}

export class RedlockStore implements Store {
  readonly name = "redlock";
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly port: Port;
  readonly #settings: RedlockSettings;
  readonly #keys: RedlockKeys;
  readonly #membership: Membership;
  readonly #wakeUps: WakeUps;
  readonly #withdrawals: Withdrawals;
  readonly #inspection: Inspection;
  readonly #seen = new SeenBallots();
  readonly #reserveMs: number;
  readonly #around: Surroundings;
  readonly #acquisitions = new Set<Acquisition>();
  readonly #grants: KeptGrants;
  readonly #renewals: Renewals;
  readonly #releases: Releases;
  #lastMeta: Meta | undefined;
  #lastMetaText = "";
  #isClosed = false;
  #onGone: (event: GoneEvent) => void = () => {};

  constructor(
    nodes: readonly RedlockNode[],
    settings: RedlockSettings,
    port: Port = networkPort(),
  ) {
    const { namespace, nodeTimeoutMs, driftFactor, maxTtlMs, bootstrap } = settings;
    const { announceMs = ANNOUNCE_MS } = settings;
    this.namespace = namespace;
    this.port = port;
    this.#settings = settings;
    const set = nodes
      .map(({ name }) => name)
      .sort()
      .join(",");
    this.#keys = new RedlockKeys(namespace);
    const rules = { set, maxTtlMs, announceMs, bootstrap };
    const surveyMs = SURVEY_TIMEOUTS * nodeTimeoutMs;
    this.#membership = new Membership(port, nodes, this.#keys.ofNode(), rules, surveyMs);
    const reserveMs = Math.ceil(RESERVE_TIMEOUTS * nodeTimeoutMs);
    this.#reserveMs = reserveMs;
    this.#withdrawals = new Withdrawals(port, nodes, reserveMs);
    this.#inspection = new Inspection(port, nodes, this.#keys);
    this.#grants = new KeptGrants(nodes, (event) => this.#onGone(event));
    this.#wakeUps = new WakeUps(
      port,
      nodes,
      (at, owner, token, reason) => this.#grants.onRevoked(at, owner, token, reason),
      (at) => this.#grants.lookAfterAll(at),
    );
    this.#around = {
      port,
      nodes,
      setId: setIdOf(set),
      driftFactor,
      seen: this.#seen,
      wakeUps: this.#wakeUps,
      reserveMs,
      // Where a majority was silent, more patience is the better bet than asking again.
      limitMs: (ttlMs, failures) =>
        Math.min(nodeTimeoutMs * 2 ** failures, ttlMs / LIMIT_PART, LONGEST_LIMIT_MS),
      metaText: ({ meta }) => this.#metaText(meta),
      readmit: () => this.#membership.readmit(),
      isAnnounced: (ttlMs) => this.#membership.isAnnounced(ttlMs),
      announce: (ttlMs) => this.#membership.announce(ttlMs),
      onMajority: () => this.#membership.onMajority(),
      onVote: (vote) => this.#notice(vote),
      withdraw: (withdrawal) => this.#withdrawals.withdraw(withdrawal),
    };
    this.#renewals = new Renewals(this.#around);
    this.#releases = new Releases(this.#around, this.#withdrawals);
  }

  async acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy> {
    if (this.#isClosed) throw new ClosedError({ store: this.name });
    this.#wakeUps.listen();
    const keys = this.#keys.of(claim.space, claim.name);
    const acquisition = new Acquisition(claim, keys, wait, this.#around);
    this.#acquisitions.add(acquisition);
    const { ups } = this.#wakeUps;
    try {
      const outcome = await acquisition.run();
      if (outcome.type === "granted") {
        this.#grants.add(outcome);
        if (this.#wakeUps.ups !== ups) this.#grants.lookAfter(outcome);
      }
      return outcome;
    } finally {
      this.#acquisitions.delete(acquisition);
    }
  }

  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    const renewals = this.#renewals;
    return Promise.all(
      grants.map(({ grant, ttlMs }) => renewals.renew(grant as RedlockGrant, ttlMs)),
    );
  }

  async release(
    given: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const grant = given as RedlockGrant;
    const { claim, token } = grant;
    if (grant.isReleased) return false;
    this.#grants.remove(grant);
    const ballot = Number(token);
    this.#seen.note(keyOf(claim.space, claim.name), ballot + 1, this.port.clock.wallUs());
    const args = releaseArgs(claim.owner, ballot, this.#reserveMs);
    if (keep) args.push(`${Math.ceil(keep.ttlMs)}`, JSON.stringify(keep.meta));
    const isHeld = await this.#releases.release(grant, args, this.port.clock.nowMs() + withinMs);
    grant.isReleased = true;
    return isHeld;
  }

  async resume(claim: Claim, token: bigint): Promise<Grant | null> {
    const keys = this.#keys.of(claim.space, claim.name);
    this.#wakeUps.listen();
    const grant = await this.#renewals.resume(claim, keys, token);
    if (!grant) return null;
    this.#grants.add(grant);
    // The store did not know the grant when a revocation came before the line above.
    this.#grants.lookAfter(grant);
    return grant;
  }

  detach(grant: Grant): void {
    this.#grants.remove(grant as RedlockGrant);
  }

  onEvent(listener: (event: GoneEvent) => void): void {
    this.#onGone = listener;
  }

  inspect(space: Space, name: string): Promise<LockView> {
    return this.#inspection.inspect(space, name);
  }

  list(space: Space, prefix: string): AsyncIterable<LockView> {
    return this.#inspection.list(space, prefix);
  }

  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    return this.#inspection.revoke(space, name, token, reason);
  }

  explain(error: StoreError): Promise<StoreError> {
    return explainVotes(error, this.#around.nodes);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const acquisition of [...this.#acquisitions]) acquisition.giveUp();
    await this.#withdrawals.close();
    this.#wakeUps.close();
    await this.#settings.onClose?.();
  }

  /** Whatever node does not vote is let in again when that is due, whoever met it. */
  #notice(answer: Vote | NodeRenewal | Failure): void {
    if (answer.type !== "asleep" || this.#isClosed) return;
    if (answer.why === "unmarked" || answer.why === "unfloored") this.#membership.onSleeper();
  }

  /** Acquisitions of one lock share one frozen object: its text is made once. */
  #metaText(meta: Meta): string {
    if (meta !== this.#lastMeta) {
      this.#lastMeta = meta;
      this.#lastMetaText = JSON.stringify(meta);
    }
    return this.#lastMetaText;
  }
}
