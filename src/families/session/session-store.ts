/**
 * The shared part of the family: turns a sequencer (ordered entries in sessions, and watches) into
 * a store.
 *
 * Why it is safe: a grant is backed by an entry that a listing showed as holding. No entry can get
 * ahead of it, so it holds until it leaves: by our release, by a revoke, or with its session. The
 * deadline of a session is measured from when its last confirmed keep-alive was sent, and is
 * before the earliest moment at which the store may end the session. So this process stops relying
 * on the lock before an entry behind its own can hold.
 */

import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type {
  Busy,
  Claim,
  Grant,
  LockView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
} from "../../contract/store.js";
import { assert } from "../../errors/assert.js";
import { ClosedError, type StoreError } from "../../errors/index.js";
import type { Space } from "../../rules/name.js";
import { Limits } from "../../time/limits.js";
import type { Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import { type AttemptResult, lateGrantError, MAX_LATE_GRANTS } from "../acquire-errors.js";
import { Acquisition, type Collaborators } from "./acquisition.js";
import { EntryLines } from "./entry-lines.js";
import { markText } from "./entry-text.js";
import { GrantMoves } from "./grant-moves.js";
import { GrantWatches } from "./grant-watches.js";
import { HeldEntries } from "./held-entries.js";
import { LastFailure } from "./last-failure.js";
import { Queues } from "./queues.js";
import { Renewals } from "./renewals.js";
import type { LockId, OwnEntry, Sequencer } from "./sequencer.js";
import type { Session } from "./session.js";
import { type GrantMove, SessionGrant } from "./session-grant.js";
import { Sessions } from "./sessions.js";
import { Tries } from "./tries.js";
import { lockView } from "./views.js";
import { Withdrawals } from "./withdrawals.js";

const LOOK_MS = 5_000;
const CLOSE_MS = 1_000;

export class SessionStore implements Store {
  readonly name: string;
  readonly namespace: string;
  readonly traits: Traits;
  readonly runtime: Runtime;
  readonly #sequencer: Sequencer;
  readonly #parts: Collaborators;
  readonly #renewals: Renewals;
  readonly #acquisitions = new Set<Acquisition>();
  readonly #tries: Tries;
  /** Sessions of detached leases. `close` leaves them open for the process that resumes them. */
  readonly #detached = new WeakSet<Session>();
  #isClosed = false;

  constructor(sequencer: Sequencer) {
    this.name = sequencer.name;
    this.namespace = sequencer.namespace ?? "";
    this.traits = sequencer.traits;
    this.runtime = sequencer.runtime;
    this.#sequencer = sequencer;
    const held = new HeldEntries();
    const queues = new Queues(sequencer, held);
    const grants = new GrantWatches(sequencer, queues, held);
    const sessions = new Sessions(sequencer);
    const withdrawals = new Withdrawals(sequencer, queues);
    const limits = new Limits(this.runtime);
    const lines = new EntryLines();
    const lastFailure = new LastFailure(sequencer);
    this.#parts = { sequencer, limits, sessions, lines, queues, withdrawals, grants, lastFailure };
    this.#renewals = new Renewals(this.runtime, grants, new GrantMoves(sessions, grants));
    this.#tries = new Tries(this.runtime.clock, (claim) => this.#acquire(claim, null));
  }

  acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy> {
    const isExclusiveTry = wait === null && claim.mode === "exclusive";
    return isExclusiveTry ? this.#tries.acquire(claim) : this.#acquire(claim, wait);
  }

  async #acquire(claim: Claim, wait: Wait | null): Promise<SessionGrant | Busy> {
    if (this.#isClosed) throw new ClosedError({ store: this.name });
    let late = 0;
    for (let attempt = claim; ; attempt = { ...claim, owner: this.runtime.random.id() }) {
      const result = await this.#attempt(attempt, wait);
      if (result.type !== "again") return result;
      if (this.#isClosed || wait?.ended) return { type: "busy", holder: null, mark: null };
      if (result.reason === "late") late += 1;
      if (late === MAX_LATE_GRANTS || (late > 0 && !wait)) throw lateGrantError(claim, this.name);
    }
  }

  async #attempt(claim: Claim, wait: Wait | null): Promise<AttemptResult<SessionGrant>> {
    const acquisition = new Acquisition(claim, wait, this.#parts);
    this.#acquisitions.add(acquisition);
    try {
      return await acquisition.run();
    } finally {
      this.#acquisitions.delete(acquisition);
    }
  }

  async renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    return Promise.all(
      grants.map(({ grant, ttlMs }) => this.#renewals.renew(ownGrant(grant), ttlMs)),
    );
  }

  async release(
    given: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const { grants, withdrawals } = this.#parts;
    const grant = ownGrant(given);
    const { entry, home, move } = grant;
    grant.isReleasing = true;
    if (home.isOver) {
      grants.giveUp(grant);
      this.#endMove(entry, move);
      if (home.isDedicated) void home.endInStore();
      return false;
    }
    grants.drop(grant);
    const mark = keep && { ttlMs: keep.ttlMs, text: markText(keep.meta, grant.token) };
    const released = withdrawals
      .release(entry, home, withinMs, mark)
      .finally(() => this.#endMove(entry, move));
    // Without a mark, the release keeps within the time by itself; the check for the mark may not.
    return keep ? within(this.runtime.timers, withinMs, released) : released;
  }

  async resume(claim: Claim, token: bigint, locator: string | null): Promise<Grant | null> {
    if (locator === null) return null;
    const { sessions, grants } = this.#parts;
    const { clock } = this.runtime;
    const endMs = clock.nowMs() + claim.storeTimeoutMs;
    const resumed = await this.#sequencer.resumeSession(locator, claim, claim.storeTimeoutMs);
    if (resumed?.entry.token !== token) return null;
    const { storeSession, entry, moment } = resumed;
    const sentMs = clock.nowMs();
    const proof = await storeSession.prove([entry], endMs - sentMs);
    if (proof.type === "gone" || proof.missing.has(entry)) return null;
    // The handle may be forged or corrupted, so trust its ttl only as far as the proof confirms it.
    const home = sessions.adopt(storeSession, Math.min(claim.ttlMs, proof.ttlMs), sentMs);
    const grant = new SessionGrant(entry, home, moment);
    grants.take(grant);
    return grant;
  }

  detach(given: Grant): void {
    const grant = ownGrant(given);
    this.#parts.grants.giveUp(grant);
    // During a move the entry may be in either session, so keep both. No further move starts.
    grant.isReleasing = true;
    this.#detached.add(grant.home);
    if (grant.move) this.#detached.add(grant.move.to);
  }

  async inspect(space: Space, name: string): Promise<LockView> {
    const lock = { space, name };
    const listing = await this.#sequencer.list(lock, "texts", LOOK_MS);
    return lockView(lock, listing, this.#sequencer, LOOK_MS);
  }

  async *list(space: Space, prefix: string): AsyncIterable<LockView> {
    for (const [name, listing] of await this.#sequencer.queues(space, prefix, LOOK_MS)) {
      yield await lockView({ space, name }, listing, this.#sequencer, LOOK_MS);
    }
  }

  async revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    const lock = { space, name };
    const isDone = await this.#sequencer.revoke(lock, token, reason, LOOK_MS);
    // The lease may belong to this client, and its watch may be late or broken.
    // rule: own-revoke-ends-the-entry
    if (isDone) this.#onRevoked(lock, token, reason);
    return isDone;
  }

  #onRevoked(lock: LockId, token: bigint, reason: string): void {
    this.#parts.grants.onRevoked(lock, token, reason);
    for (const acquisition of [...this.#acquisitions]) acquisition.refuse(lock, token);
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const examination = this.#sequencer.examine?.(request);
    return (await examination) ?? { store: this.name, findings: [], failureCases: [] };
  }

  explain(error: StoreError): Promise<StoreError> {
    return this.#parts.lastFailure.explain(error);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { withdrawals, grants, limits, queues, sessions } = this.#parts;
    for (const acquisition of [...this.#acquisitions]) acquisition.giveUp();
    await within(this.runtime.timers, CLOSE_MS, withdrawals.settled()).catch(() => {});
    grants.close();
    limits.stop();
    queues.close();
    // A detached lease lives on in another process and needs its session.
    await sessions.close((session) => this.#detached.has(session));
    await this.#sequencer.close();
  }

  /** Removes the entry from the session it was moving to, which would otherwise keep it alive. */
  #endMove(entry: OwnEntry, move: GrantMove | null): void {
    if (!move) return;
    if (move.isSent) void this.#parts.withdrawals.withdraw(entry, move.to);
    else move.to.remove(entry);
  }
}

function ownGrant(grant: Grant): SessionGrant {
  assert(grant instanceof SessionGrant, "a grant comes back to the store that gave it");
  return grant;
}
