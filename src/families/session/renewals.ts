import type { Loss, Renewal } from "../../contract/store.js";
import type { Runtime } from "../../time/runtime.js";
import type { GrantMoves } from "./grant-moves.js";
import type { GrantWatches } from "./grant-watches.js";
import type { SessionGrant } from "./session-grant.js";

/** The result of one renewal. `gone`: the grant is gone, but its `end` has not been called yet. */
type Outcome =
  | Exclude<Renewal, { type: "ended" }>
  | { readonly type: "gone"; readonly reason: Loss["reason"] };

/** Renews grants by proving the sessions of their entries. */
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
    // End the grant now: nothing may rely on it while the rest of the batch is still unanswered.
    // rule: proof-without-the-entry-ends-the-grant
    this.#grants.lose(grant, renewal.reason, "");
    return { type: "ended" };
  }

  async #renew(grant: SessionGrant, ttlMs: number): Promise<Outcome> {
    // After the deadline another process may hold the lock, so a renewal must not revive the lease.
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
      // The move failed, but a plain renewal still extends the lease.
      if (isMoving) await this.#prove(grant).catch(() => {});
      return { type: "unknown", error };
    }
  }

  /** During a move the entry may be in either session, so both are renewed. */
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
