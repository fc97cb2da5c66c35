import type { Claim, Grant, Loss, Renewal } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import type { Renew } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import { keyOf } from "../../rules/name.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import { LedgerGrant, ownGrant } from "./ledger-grant.js";

/** The result of one renewal. `gone`: the grant is gone, but its `end` has not been called yet. */
type Outcome = Exclude<Renewal, { type: "ended" }> | ({ readonly type: "gone" } & Loss);

/** Renews grants, checks whether they still exist, and resumes those of other clients. */
export class Renewals {
  readonly #client: ArbiterClient;

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  async renew(given: Grant, ttlMs: number): Promise<Renewal> {
    const grant = ownGrant(given);
    const renewal = await this.#renew(grant, ttlMs);
    if (renewal.type !== "gone") return renewal;
    // End the grant now: nothing may rely on it while the rest of the batch is still unanswered.
    // rule: answered-gone-ends-the-grant
    this.#client.grants.lose(grant, renewal.reason, renewal.detail);
    return { type: "ended" };
  }

  async #renew(grant: LedgerGrant, ttlMs: number): Promise<Outcome> {
    try {
      const { key, claim, deadlineMs } = grant;
      // After the deadline the store may grant the lock to another owner, so do not revive it.
      // rule: no-renewal-is-sent-late
      if (this.#client.runtime.clock.exactMs() >= deadlineMs) {
        return { type: "gone", reason: "expired", detail: "" };
      }
      const answer = await this.#send(key, { owner: claim.owner }, ttlMs, deadlineMs);
      return this.#onAnswer(grant, ttlMs, answer);
    } catch (error) {
      return { type: "unknown", error };
    }
  }

  #onAnswer(grant: LedgerGrant, ttlMs: number, { reply, sentMs }: Answer<Renew>): Outcome {
    switch (reply.type) {
      case "renewed": {
        if (BigInt(reply.token) !== grant.token) {
          return { type: "gone", reason: "replaced", detail: "" };
        }
        // rule: renewal-counts-from-sending
        const deadlineMs = deadlineOf(sentMs, reply.remainingUs / 1000, ttlMs);
        grant.extend(deadlineMs);
        return { type: "renewed", waiting: reply.waiting };
      }
      case "gone":
        return reply;
      case "stale": {
        const message = "The renewal reached the store after the deadline of its lease.";
        return { type: "unknown", error: new StoreError(message, { outcome: "not_applied" }) };
      }
    }
  }

  /** Takes over the grant of another client, by its claim and token; null if it is gone. */
  async resume(claim: Claim, token: bigint): Promise<LedgerGrant | null> {
    const key = keyOf(claim.space, claim.name);
    const { id, runtime, batcher, grants } = this.#client;
    // A later answer is useless: the lease would have expired, or the caller has given up.
    const windowMs = Math.min(claim.ttlMs, claim.storeTimeoutMs);
    const untilMs = runtime.clock.nowMs() + windowMs;
    const resume = { owner: claim.owner, resumedBy: id };
    const { reply, sentMs } = await this.#send(key, resume, claim.ttlMs, untilMs);
    if (reply.type !== "renewed" || BigInt(reply.token) !== token) return null;
    const deadlineMs = deadlineOf(sentMs, reply.remainingUs / 1000, claim.ttlMs);
    if (runtime.clock.exactMs() >= deadlineMs) return null;
    // Copies of this owner's acquire may still arrive; only the other client knew. That acquire was
    // sent before this call, so its copies become invalid before those of an acquire sent now.
    const grant = new LedgerGrant(claim, key, reply, deadlineMs);
    grant.tombstoneUs = batcher.time(key).storeUs(sentMs + windowMs) + 1;
    grants.adopt(grant);
    // A revocation may have been pushed before this client knew the grant.
    void this.lookAfter(grant);
    return grant;
  }

  /** Checks whether a grant has ended unnoticed, by a confirm, which changes nothing. */
  async lookAfter(grant: LedgerGrant): Promise<void> {
    try {
      // Read the deadline first: `lose` moves it into the past.
      const { key, claim, deadlineMs } = grant;
      const confirm = { type: "confirm", key, owner: claim.owner } as const;
      const { reply } = await this.#client.batcher.send(confirm);
      if (reply.type !== "gone") return;
      this.#client.grants.lose(grant, reply.reason, reply.detail);
      // A store that lost the grant may have lost its token counter too. This renewal renews
      // nothing, but its `seenToken` makes the store count on from there.
      if (reply.reason !== "revoked") await this.#send(key, { owner: claim.owner }, 0, deadlineMs);
    } catch {
      // The next renewal finds out.
    }
  }

  async #send(
    key: string,
    who: Pick<Renew, "owner" | "resumedBy">,
    ttlMs: number,
    untilMs: number,
  ): Promise<Answer<Renew>> {
    const { batcher, grants } = this.#client;
    await batcher.syncClock(key);
    return batcher.send({
      type: "renew",
      key,
      ...who,
      ttlUs: Math.ceil(ttlMs * 1000),
      notAfterUs: batcher.time(key).notAfterUs(untilMs),
      seenToken: grants.seenToken,
    });
  }
}
