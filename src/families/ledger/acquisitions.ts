import type { Heartbeat, PushedGrant } from "../../rules/ledger-command.js";
import { deadlineOf } from "../../rules/margin.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./command-batcher.js";
import type { Owners } from "./grants.js";
import { LedgerGrant } from "./ledger-grant.js";

/** The pending acquisitions of this client. */
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

  /** Removes an acquisition that ended without a grant. A grant replaces its acquisition. */
  remove({ owner }: Acquisition): void {
    this.#owners.delete(owner);
  }

  of(owner: string): Acquisition | undefined {
    const there = this.#owners.get(owner);
    return there instanceof LedgerGrant ? undefined : there;
  }

  /** Handles a push. The store's clock says when it made the offer. */
  onPush(key: string, offer: PushedGrant): void {
    const { batcher, runtime } = this.#client;
    const receivedMs = runtime.clock.nowMs();
    const deadlineMs = batcher.time(key).believe(offer, receivedMs);
    this.#hand(key, offer, deadlineMs, receivedMs);
  }

  /** Handles the answer to a heartbeat, which repeats the offers whose pushes may be lost. */
  onHeartbeatReply(key: string, { reply, sentMs, nowUs }: Answer<Heartbeat>): void {
    for (const offer of reply.grants) {
      const remainingMs = (offer.expiryUs - nowUs) / 1000;
      this.#hand(key, offer, deadlineOf(sentMs, remainingMs, lengthMs(offer)), sentMs);
    }
  }

  /** Keeps the acquisitions from accepting a grant that this client has revoked. */
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

  /** Passes an offer to its acquisition, or releases it if the acquisition has ended. */
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
