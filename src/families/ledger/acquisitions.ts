import type { Heartbeat, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import type { Owners } from "./grants.js";
import { LedgerGrant } from "./ledger-grant.js";

/** The acquisitions of this client that are under way. */
export class Acquisitions {
  readonly #client: ArbiterClient;
  readonly #owners: Owners;

  constructor(client: ArbiterClient, owners: Owners) {
    this.#client = client;
    this.#owners = owners;
  }

  add(acquisition: Acquisition): void {
    this.#owners.set(acquisition.owner, acquisition);
  }

  /** It ended without a grant; a grant takes its place. */
  remove({ owner }: Acquisition): void {
    this.#owners.delete(owner);
  }

  of(owner: string): Acquisition | undefined {
    const there = this.#owners.get(owner);
    return there instanceof LedgerGrant ? undefined : there;
  }

  /** A push: the store granted, some time ago, by its own clock. */
  onPush(key: string, offer: PushedGrant): void {
    const { batcher, runtime } = this.#client;
    const receivedMs = runtime.clock.nowMs();
    const deadlineMs = batcher.time(key).believe(offer, receivedMs);
    this.#hand(key, offer, deadlineMs, receivedMs);
  }

  /** The answer to a heartbeat: it brings the grants whose pushes may have been lost. */
  onHeartbeatReply(key: string, { reply, sentMs, nowUs }: Answer<Heartbeat>): void {
    for (const offer of reply.grants) {
      const remainingMs = (offer.expiryUs - nowUs) / 1000;
      this.#hand(key, offer, deadlineOf(sentMs, remainingMs, lengthMs(offer)), sentMs);
    }
  }

  /** This client has revoked a grant: no acquisition may take it, should it arrive late. */
  onRevoked(key: string, token: bigint): void {
    for (const there of [...this.#owners.values()]) {
      if (!(there instanceof LedgerGrant) && there.key === key) there.refuse(token);
    }
  }

  giveUpAll(): void {
    for (const there of [...this.#owners.values()]) {
      if (!(there instanceof LedgerGrant)) there.giveUp();
    }
  }

  /** Gives an offer to its acquisition, or back to the store where the acquisition has ended. */
  #hand(key: string, offer: PushedGrant, deadlineMs: number | null, fromMs: number): void {
    const { arbiter, cleanups } = this.#client;
    const acquisition = this.of(offer.owner);
    if (!acquisition) return cleanups.refuse(key, offer.owner);
    const believedMs = arbiter.believesPushes ? deadlineMs : null;
    acquisition.onOffer(offer, believedMs, fromMs + lengthMs(offer));
  }
}

function lengthMs({ grantedUs, expiryUs }: PushedGrant): number {
  return (expiryUs - grantedUs) / 1000;
}
