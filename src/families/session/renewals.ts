import type { Loss, Renewal } from "../../contract/store.js";
import type { Runtime } from "../../time/runtime.js";
import type { GrantMoves } from "./grant-moves.js";
import type { GrantWatches } from "./grant-watches.js";
import type { SessionGrant } from "./session-grant.js";

/** The answer to one renewal; `gone`: the grant is over, but has not been ended here yet. */
type Outcome =
  | Exclude<Renewal, { type: "ended" }>
  | { readonly type: "gone"; readonly reason: Loss["reason"] };

/** Renews grants by a proof of the sessions that their entries are in. */
export class Renewals {
  readonly #runtime: Runtime;
  readonly #grants: GrantWatches;
  readonly #moves: GrantMoves;

  constructor(runtime: Runtime, grants: GrantWatches, moves: GrantMoves) {
    this.#runtime = runtime;
    this.#grants = grants;
    this.#moves = moves;
  }

  async renew(grant: SessionGrant, ttlMs: number): Promise<Renewal> {
    const renewal = await this.#renew(grant, ttlMs);
    if (renewal.type !== "gone") return renewal;
    // Nothing may rely on the grant from here on, not even until its batch is answered.
    // rule: proof-without-the-entry-ends-the-grant
    this.#grants.lose(grant, renewal.reason, "");
    return { type: "ended" };
  }

  async #renew(grant: SessionGrant, ttlMs: number): Promise<Outcome> {
    // After the deadline the next entry may hold: a renewal would revive a lease that is over.
    if (this.#runtime.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired" };
    }
    const isMoving = this.#moves.mustMove(grant, ttlMs);
    try {
      if (isMoving && !(await this.#moves.move(grant, ttlMs))) {
        return { type: "gone", reason: "missing" };
      }
      return await this.#prove(grant);
    } catch (error) {
      // A move that failed must not cost the time that a plain renewal gives.
      if (isMoving) await this.#prove(grant).catch(() => {});
      return { type: "unknown", error };
    }
  }

  /** While the entry may be in either of two sessions, both must last. */
  async #prove(grant: SessionGrant): Promise<Outcome> {
    const { home, move } = grant;
    const proof = await home.renew();
    if (proof.type === "gone") return { type: "gone", reason: "session_ended" };
    if (proof.missing.has(grant.entry)) return { type: "gone", reason: "missing" };
    if (move?.isSent) {
      const next = await move.to.renew();
      if (next.type === "gone") return { type: "gone", reason: "session_ended" };
      grant.extend(Math.min(home.deadlineMs, move.to.deadlineMs));
    } else grant.extend(home.deadlineMs);
    return { type: "renewed", waiting: false };
  }
}
