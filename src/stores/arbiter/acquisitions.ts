import type { PushedGrant, Touch } from "../../rules/ledger-command.js";
import { LoneMap } from "../../rules/lone-map.js";
import { deadlineOf } from "../../rules/margin.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterClient } from "./arbiter-client.js";
import type { Answer } from "./channel.js";

/** The acquisitions of this client that are under way, by owner. */
export class Acquisitions {
  readonly #client: ArbiterClient;
  readonly #byOwner = new LoneMap<string, Acquisition>();

  constructor(client: ArbiterClient) {
    this.#client = client;
  }

  add(acquisition: Acquisition): void {
    this.#byOwner.set(acquisition.owner, acquisition);
  }

  remove({ owner }: Acquisition): void {
    this.#byOwner.delete(owner);
  }

  of(owner: string): Acquisition | undefined {
    return this.#byOwner.get(owner);
  }

  /** A push: the store granted, some time ago, by its own clock. */
  onPush(key: string, offer: PushedGrant): void {
    const { channel, port } = this.#client;
    const receivedMs = port.clock.nowMs();
    const deadlineMs = channel.time(key).believe(offer, receivedMs);
    this.#hand(key, offer, deadlineMs, receivedMs);
  }

  /** The answer to a touch: it brings the grants whose pushes may have been lost. */
  onTouched(key: string, { reply, sentMs, nowUs }: Answer<Touch>): void {
    for (const offer of reply.grants) {
      const remainingMs = (offer.expiryUs - nowUs) / 1000;
      this.#hand(key, offer, deadlineOf(sentMs, remainingMs, lengthMs(offer)), sentMs);
    }
  }

  giveUpAll(): void {
    for (const acquisition of [...this.#byOwner.values()]) acquisition.giveUp();
  }

  /** Gives an offer to its acquisition, or back to the store where the acquisition has ended. */
  #hand(key: string, offer: PushedGrant, deadlineMs: number | null, fromMs: number): void {
    const { arbiter, cleanups } = this.#client;
    const acquisition = this.#byOwner.get(offer.owner);
    if (!acquisition) return cleanups.refuse(key, offer.owner);
    const believedMs = arbiter.believesPushes ? deadlineMs : null;
    acquisition.onOffer(offer, believedMs, fromMs + lengthMs(offer));
  }
}

function lengthMs({ grantedUs, expiryUs }: PushedGrant): number {
  return (expiryUs - grantedUs) / 1000;
}
