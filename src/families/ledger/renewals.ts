import type { Claim, Grant, Loss, Renewal } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import type { Renew } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import { keyOf } from "../../rules/name.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import { LedgerGrant, ownGrant } from "./ledger-grant.js";

/** The answer to one renewal; `gone`: the grant is over, but has not been ended here yet. */
type Outcome = Exclude<Renewal, { type: "ended" }> | ({ readonly type: "gone" } & Loss);

/** Renews grants, finds out whether they still stand, and resumes those of other clients. */
export class Renewals {
  readonly #client: ArbiterClient;

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  async renew(given: Grant, ttlMs: number): Promise<Renewal> {
    const grant = ownGrant(given);
    const renewal = await this.#renew(grant, ttlMs);
    if (renewal.type !== "gone") return renewal;
    // Nothing may rely on the grant from here on, not even until its batch is answered.
    // rule: answered-gone-ends-the-grant
    this.#client.grants.lose(grant, renewal.reason, renewal.detail);
    return { type: "ended" };
  }

  async #renew(grant: LedgerGrant, ttlMs: number): Promise<Outcome> {
    try {
      const { key, claim, deadlineMs } = grant;
      // A renewal after its deadline could revive a lock that the store may give to another owner.
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

  /** The grant of another client, known by its claim and token; null when it is gone. */
  async resume(claim: Claim, token: bigint): Promise<LedgerGrant | null> {
    const key = keyOf(claim.space, claim.name);
    const { id, runtime, batcher, grants } = this.#client;
    // A later answer is of no use: the lease would be over, or the caller has given up.
    const windowMs = Math.min(claim.ttlMs, claim.storeTimeoutMs);
    const untilMs = runtime.clock.nowMs() + windowMs;
    const resume = { owner: claim.owner, resumedBy: id };
    const { reply, sentMs } = await this.#send(key, resume, claim.ttlMs, untilMs);
    if (reply.type !== "renewed" || BigInt(reply.token) !== token) return null;
    const deadlineMs = deadlineOf(sentMs, reply.remainingUs / 1000, claim.ttlMs);
    if (runtime.clock.exactMs() >= deadlineMs) return null;
    // How the acquire of this owner was answered is not known here. It was sent before this call,
    // so no copy of it acts for longer than a copy of an acquire that would be sent now.
    const grant = new LedgerGrant(claim, key, reply, deadlineMs);
    grant.tombstoneUs = batcher.time(key).storeUs(sentMs + windowMs) + 1;
    grants.adopt(grant);
    // The push of a revocation may have arrived before this client knew the grant.
    void this.lookAfter(grant);
    return grant;
  }

  /** Finds out whether a grant was revoked unheard: one more confirm changes nothing, but tells. */
  async lookAfter(grant: LedgerGrant): Promise<void> {
    try {
      // The deadline is read before the loss ends the grant.
      const { key, claim, deadlineMs } = grant;
      const confirm = { type: "confirm", key, owner: claim.owner } as const;
      const { reply } = await this.#client.batcher.send(confirm);
      if (reply.type !== "gone") return;
      this.#client.grants.lose(grant, reply.reason, reply.detail);
      // A store that lost the grant may have lost its token: this renewal renews nothing, but it
      // carries the token there.
      if (reply.reason !== "revoked") await this.#send(key, { owner: claim.owner }, 0, deadlineMs);
    } catch {
      // The next renewal asks again.
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
