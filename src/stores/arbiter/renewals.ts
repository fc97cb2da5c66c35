import { StoreError } from "../../errors.js";
import type { Renew } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import { keyOf } from "../../rules/name.js";
import type { Claim, Renewal } from "../../store.js";
import type { Port } from "../../time/port.js";
import { ArbiterGrant } from "./arbiter-grant.js";
import type { Answer, Channel } from "./channel.js";
import type { Grants } from "./grants.js";

/** Keeps grants alive, finds out whether they still are, and takes over those of other clients. */
export class Renewals {
  readonly #port: Port;
  readonly #channel: Channel;
  readonly #grants: Grants;
  readonly #client: string;

  constructor(port: Port, channel: Channel, grants: Grants, client: string) {
    this.#client = client;
    this.#port = port;
    this.#channel = channel;
    this.#grants = grants;
  }

  async renew(grant: ArbiterGrant, ttlMs: number): Promise<Renewal> {
    // A renewal after the own deadline could revive what somebody else was promised.
    // rule: no-renewal-is-sent-late
    if (this.#port.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired", detail: "" };
    }
    try {
      const answer = await this.#send(
        grant.key,
        { owner: grant.claim.owner },
        ttlMs,
        grant.deadlineMs,
      );
      return this.#onAnswer(grant, ttlMs, answer);
    } catch (error) {
      return { type: "unknown", error };
    }
  }

  #onAnswer(grant: ArbiterGrant, ttlMs: number, { reply, sentMs }: Answer<Renew>): Renewal {
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
      case "stale":
        return { type: "unknown", error: new StoreError("Too late.", { outcome: "not_applied" }) };
    }
  }

  /** The grant of another client, known by its claim and token; null when it is gone. */
  async resume(claim: Claim, token: bigint): Promise<ArbiterGrant | null> {
    const key = keyOf(claim.space, claim.name);
    // An answer later than this is of no use: the lease would be over, or nobody listens any more.
    const windowMs = Math.min(claim.ttlMs, claim.storeTimeoutMs);
    const untilMs = this.#port.clock.nowMs() + windowMs;
    const resume = { owner: claim.owner, heir: this.#client };
    const { reply, sentMs } = await this.#send(key, resume, claim.ttlMs, untilMs);
    if (reply.type !== "renewed" || BigInt(reply.token) !== token) return null;
    const deadlineMs = deadlineOf(sentMs, reply.remainingUs / 1000, claim.ttlMs);
    if (this.#port.clock.exactMs() >= deadlineMs) return null;
    // Nobody here knows how its acquire was answered, but it was sent before this: no copy of it
    // acts for longer than one that would be sent now.
    const tombstoneUs = this.#channel.time(key).storeUs(sentMs + windowMs) + 1;
    const grant = new ArbiterGrant(claim, key, reply, deadlineMs, tombstoneUs);
    this.#grants.adopt(grant);
    // A revocation right after the answer may have been told before the grant was known here.
    void this.lookAfter(grant);
    return grant;
  }

  /** A revocation may have gone unheard; to confirm once more changes nothing, but tells. */
  async lookAfter(grant: ArbiterGrant): Promise<void> {
    try {
      // Read now: the loss ends it.
      const { key, claim, deadlineMs } = grant;
      const confirm = { type: "confirm", key, owner: claim.owner } as const;
      const { reply } = await this.#channel.send(confirm);
      if (reply.type !== "gone") return;
      this.#grants.lose(grant, reply.reason, reply.detail);
      // A store that lost the grant may have lost its token: a renewal, in vain, carries it there.
      if (reply.reason !== "revoked") await this.#send(key, { owner: claim.owner }, 0, deadlineMs);
    } catch {
      // It was only a look: renewals ask again, too.
    }
  }

  async #send(
    key: string,
    who: Pick<Renew, "owner" | "heir">,
    ttlMs: number,
    untilMs: number,
  ): Promise<Answer<Renew>> {
    await this.#channel.greet(key);
    return this.#channel.send({
      type: "renew",
      key,
      ...who,
      ttlUs: Math.ceil(ttlMs * 1000),
      notAfterUs: this.#channel.time(key).storeUs(untilMs),
      seenToken: this.#grants.seenToken,
    });
  }
}
