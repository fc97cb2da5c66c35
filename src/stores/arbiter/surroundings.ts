import type { Meta } from "../../store.js";
import type { Limits } from "../../time/limits.js";
import type { Port } from "../../time/port.js";
import type { Acquisition } from "./acquisition.js";
import type { ArbiterGrant } from "./arbiter-grant.js";
import type { Channel } from "./channel.js";

/** What the store around it does for an acquisition. */
export interface Surroundings {
  readonly port: Port;
  readonly channel: Channel;
  readonly limits: Limits;
  readonly client: string;
  readonly isLocal: boolean;
  readonly believesPushes: boolean;
  offerMs(ttlMs: number): number;
  seenToken(): number;
  metaText(meta: Meta): string;
  /** It stands in the queue: keep its place, and ask again when the next holder is due. */
  onQueued(acquisition: Acquisition, ahead: number | null, dueMs: number): void;
  /** It ended, with a grant or without. */
  onSettled(acquisition: Acquisition, grant: ArbiterGrant | null): void;
  isLive(grant: ArbiterGrant): boolean;
  /** Makes sure that an owner holds nothing and waits for nothing. */
  withdraw(key: string, owner: string, tombstoneUs: number, ttlMs: number): void;
  onLost(grant: ArbiterGrant, reason: "missing" | "replaced" | "revoked", detail: string): void;
}
