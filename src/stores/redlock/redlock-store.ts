/** A store over independent nodes: asks all of them, and believes what a majority says. */

import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type {
  Busy,
  Claim,
  Grant,
  LockView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
} from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import { ClosedError, type StoreError } from "../../errors/index.js";
import { MetaText } from "../../rules/meta-text.js";
import { keyOf, type Space } from "../../rules/name.js";
import { networkRuntime, type Runtime } from "../../time/runtime.js";
import { Acquisition, type AcquisitionParts } from "./attempt.js";
import { explainVotes } from "./errors.js";
import { Grants, QuorumGrant } from "./grants.js";
import { Inspection } from "./inspection.js";
import { type KeyLayout, Layout, SingleServerLayout } from "./layout.js";
import { Membership } from "./membership.js";
import { SeenBallots } from "./protocol.js";
import type { RedlockNode } from "./quorum.js";
import { Quorum } from "./quorum.js";
import { Releases } from "./release.js";
import { Renewals } from "./renewal.js";
import { WakeUps } from "./waiting.js";

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

const SINGLE_SERVER_TRAITS: Traits = {
  ...TRAITS,
  exclusiveBecause: "a plain key has one value, and so one holder",
};

/** Leases above `maxTtlMs` are announced again after this time. */
const ANNOUNCE_MS = 3_600_000;

export interface RedlockSettings {
  readonly namespace: string;
  /** Stands before every name. Default: none. */
  readonly prefix?: string;
  /** A waiter looks at the lock at least this often. */
  readonly pollMs?: number;
  readonly nodeTimeoutMs: number;
  readonly driftFactor: number;
  readonly maxTtlMs: number;
  /** For how long nodes remember the announcement of longer leases. Default: an hour. */
  readonly announceMs?: number;
  readonly bootstrap: "wait" | "now";
  /** Closes the clients that this package opened. */
  readonly onClose?: () => Promise<unknown>;
}

export class RedlockStore implements Store {
  readonly name = "redlock";
  readonly namespace: string;
  readonly traits: Traits;
  readonly runtime: Runtime;
  readonly #layout: KeyLayout;
  readonly #quorum: Quorum;
  readonly #membership: Membership;
  readonly #grants: Grants;
  readonly #wakeUps: WakeUps;
  readonly #releases: Releases;
  readonly #renewals: Renewals;
  readonly #inspection: Inspection;
  readonly #seen = new SeenBallots();
  readonly #parts: AcquisitionParts;
  readonly #acquisitions = new Set<Acquisition>();
  readonly #onClose: () => Promise<unknown>;
  #isClosed = false;

  constructor(
    nodes: readonly RedlockNode[],
    settings: RedlockSettings,
    runtime: Runtime = networkRuntime(),
  ) {
    const { namespace, maxTtlMs, bootstrap, announceMs = ANNOUNCE_MS } = settings;
    this.namespace = namespace;
    this.runtime = runtime;
    this.#onClose = settings.onClose ?? (async () => {});
    const startDelayMs = bootstrap === "wait" ? maxTtlMs : 0;
    const quorum = new Quorum(nodes, settings, runtime, startDelayMs);
    this.#quorum = quorum;
    this.traits = quorum.isSingleServer ? SINGLE_SERVER_TRAITS : TRAITS;
    const [{ driver }] = nodes as readonly [RedlockNode];
    this.#layout = quorum.isSingleServer
      ? new SingleServerLayout(namespace, settings.prefix ?? "", driver)
      : new Layout(namespace, settings.prefix);
    const rules = { maxTtlMs, announceMs, bootstrap };
    this.#membership = new Membership(quorum, this.#layout.keysOfNode(), rules);
    this.#grants = new Grants(nodes);
    this.#wakeUps = new WakeUps(quorum, this.#grants);
    this.#releases = new Releases(quorum);
    this.#renewals = new Renewals(quorum, this.#membership, this.#grants, this.#wakeUps);
    this.#inspection = new Inspection(quorum, this.#layout);
    this.#parts = {
      quorum,
      membership: this.#membership,
      wakeUps: this.#wakeUps,
      releases: this.#releases,
      grants: this.#grants,
      seen: this.#seen,
      pollMs: settings.pollMs ?? Number.POSITIVE_INFINITY,
      metaText: new MetaText(),
    };
  }

  async acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy> {
    if (this.#isClosed) throw new ClosedError({ store: this.name });
    const refusal = this.#membership.refusalOf(claim.ttlMs);
    if (refusal) throw refusal;
    this.#wakeUps.listen();
    const keys = this.#layout.keysOf(claim.space, claim.name);
    const acquisition = new Acquisition(claim, keys, wait, this.#parts);
    this.#acquisitions.add(acquisition);
    const { ups } = this.#wakeUps;
    try {
      const result = await acquisition.run();
      // A revocation may have been published while a subscription was down.
      const hasResubscribed = this.#wakeUps.ups !== ups;
      if (result.type === "granted" && hasResubscribed) this.#grants.lookAfter(result);
      return result;
    } finally {
      this.#acquisitions.delete(acquisition);
    }
  }

  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    return this.#renewals.renew(
      grants.map(({ grant, ttlMs }) => ({ grant: grantOfThisStore(grant), ttlMs })),
    );
  }

  async release(
    given: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const grant = grantOfThisStore(given);
    const { claim, token } = grant;
    if (grant.isReleased) return false;
    this.#grants.remove(grant);
    const name = keyOf(claim.space, claim.name);
    this.#seen.note(name, Number(token) + 1, this.runtime.clock.wallUs());
    const untilMs = this.runtime.clock.nowMs() + withinMs;
    const isHeld = await this.#releases.release(grant, untilMs, keep);
    grant.isReleased = true;
    return isHeld;
  }

  async resume(claim: Claim, token: bigint): Promise<Grant | null> {
    const refusal = this.#membership.refusalOf(claim.ttlMs);
    if (refusal) throw refusal;
    const keys = this.#layout.keysOf(claim.space, claim.name);
    this.#wakeUps.listen();
    const grant = await this.#renewals.resume(claim, keys, token);
    if (!grant) return null;
    this.#grants.add(grant);
    // A revocation may have been published before the grant was added.
    this.#grants.lookAfter(grant);
    return grant;
  }

  detach(grant: Grant): void {
    this.#grants.remove(grantOfThisStore(grant));
  }

  inspect(space: Space, name: string): Promise<LockView> {
    return this.#inspection.inspect(space, name);
  }

  list(space: Space, prefix: string): AsyncIterable<LockView> {
    return this.#inspection.list(space, prefix);
  }

  async revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    const isDone = await this.#inspection.revoke(space, name, token, reason);
    // The lease may be one of this client, which the messages of the nodes may not reach.
    if (isDone) this.#grants.onOwnRevoke(this.#layout.keysOf(space, name), token, reason);
    return isDone;
  }

  explain(error: StoreError): Promise<StoreError> {
    return explainVotes(error, this.#quorum.nodes);
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const { nodes, set, nodeTimeoutMs, isSingleServer, startDelayMs } = this.#quorum;
    const { maxTtlMs } = this.#membership;
    // Only a doctor needs this.
    const { examineRedlock } = await import("./doctor.js");
    const survey = () => this.#membership.survey();
    const terms = { set, nodeTimeoutMs, maxTtlMs, isSingleServer, startDelayMs };
    return examineRedlock({ nodes, runtime: this.runtime, terms, survey }, request);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const acquisition of [...this.#acquisitions]) acquisition.giveUp();
    this.#membership.close();
    await this.#releases.close();
    this.#wakeUps.close();
    await this.#onClose();
  }
}

function grantOfThisStore(grant: Grant): QuorumGrant {
  assert(grant instanceof QuorumGrant, "A store gets only grants that it made.");
  return grant;
}
