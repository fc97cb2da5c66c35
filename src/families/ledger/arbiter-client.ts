import { InvalidOptionError } from "../../errors/index.js";
import { MetaText } from "../../rules/meta-text.js";
import { SingleMap } from "../../rules/single-map.js";
import { Limits } from "../../time/limits.js";
import type { Runtime } from "../../time/runtime.js";
import { Acquisitions } from "./acquisitions.js";
import type { Arbiter } from "./arbiter.js";
import { Cleanups } from "./cleanups.js";
import { CommandBatcher } from "./command-batcher.js";

import { Grants, type Owners } from "./grants.js";
import { HandoffChecks } from "./handoff-checks.js";
import { Heartbeats } from "./waiter-heartbeat.js";
import { UnansweredReleases } from "./withdrawal.js";

/** Options of the family for one arbiter. */
export interface ArbiterOptions {
  /** How long an offer waits for its confirm. Default: 2 s, or a sixth of the ttl if longer. */
  readonly offerMs?: number;
}

const USUAL_OFFER_MS = 2_000;
/** A shorter offer window would make waiting clients send heartbeats nonstop. */
const MIN_OFFER_MS = 10;

/** One client of an arbiter: the parts that its acquisitions and withdrawals share. */
export class ArbiterClient {
  /** Identifies this client to the store, which addresses pushes to it. */
  readonly id: string;
  readonly arbiter: Arbiter;
  readonly runtime: Runtime;
  readonly limits: Limits;
  readonly batcher: CommandBatcher;
  readonly grants: Grants;
  readonly acquisitions: Acquisitions;
  readonly heartbeats: Heartbeats;
  readonly cleanups: Cleanups;
  readonly handoffChecks: HandoffChecks;
  readonly releases: UnansweredReleases = new UnansweredReleases();
  readonly metaText: MetaText = new MetaText();
  readonly #offerMs: number | undefined;

  constructor(arbiter: Arbiter, { offerMs }: ArbiterOptions) {
    if (offerMs !== undefined && !(offerMs >= MIN_OFFER_MS)) {
      throw new InvalidOptionError("offerMs", offerMs, `must be at least ${MIN_OFFER_MS}`);
    }
    this.#offerMs = offerMs;
    this.arbiter = arbiter;
    this.runtime = arbiter.runtime;
    this.limits = new Limits(arbiter.runtime);
    this.batcher = new CommandBatcher(arbiter, this.limits);
    this.id = arbiter.runtime.random.id();
    this.cleanups = new Cleanups(this);
    const owners: Owners = new SingleMap();
    this.grants = new Grants(owners);
    this.acquisitions = new Acquisitions(this, owners);
    this.heartbeats = new Heartbeats(this);
    this.handoffChecks = new HandoffChecks(this);
  }

  /** How long an offer of a grant with this ttl waits for its confirm. */
  offerMs(ttlMs: number): number {
    return Math.min(ttlMs, this.#offerMs ?? Math.max(USUAL_OFFER_MS, ttlMs / 6));
  }
}
