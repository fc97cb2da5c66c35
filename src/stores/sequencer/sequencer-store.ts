/**
 * The family's shared part: turns a sequencer (ordered, session-bound entries; watches) into a
 * store.
 *
 * Who may believe what: a grant stands for an entry whose line, as the store listed it, is
 * compatible up to and with it. Entries before it only ever leave, so it holds until its own entry
 * leaves; and that leaves only by our release, a revoke, or the end of its session. The session's
 * deadline counts from the sending of a keep-alive that the store proved to have taken, and lies
 * before the earliest moment at which the store may end the session. So we stop believing before
 * anybody behind us may begin.
 */
import { ClosedError, type LossReason, StoreError } from "../../errors.js";
import { keyOf, type Space } from "../../rules/name.js";
import type {
  Busy,
  Claim,
  GoneEvent,
  Grant,
  LockView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
} from "../../store.js";
import { Limits } from "../../time/limits.js";
import type { Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import { Acquisition, type Surroundings } from "./acquisition.js";
import { Custody } from "./custody.js";
import { Line } from "./line.js";
import type { Listing, OwnEntry, Place, Sequencer } from "./sequencer.js";
import { SequencerGrant } from "./sequencer-grant.js";
import type { Session } from "./session.js";
import { Sessions } from "./sessions.js";
import { holderCount } from "./standing.js";
import { lockView, writeText } from "./views.js";
import { Withdrawals } from "./withdrawals.js";

/**
 * So many answers in a row that came after the lease was over: the ttl is too short for this store.
 */
const MOST_LATE_GRANTS = 3;
const CALL_MS = 1_500;
const LOOK_MS = 5_000;
const GLANCE_MS = 1_000;
const CLOSE_MS = 1_000;

export class SequencerStore implements Store {
  readonly name: string;
  readonly namespace: string;
  readonly traits: Traits;
  readonly port: Port;
  readonly #sequencer: Sequencer;
  readonly #sessions: Sessions;
  readonly #around: Surroundings;
  readonly #acquisitions = new Set<Acquisition>();
  readonly #custody: Custody;
  readonly #lines = new Map<string, Line>();
  readonly #withdrawals: Withdrawals;
  readonly #limits: Limits;
  /** Those of leases that other processes may resume. */
  readonly #detached = new WeakSet<Session>();
  #isClosed = false;

  constructor(sequencer: Sequencer) {
    this.name = sequencer.name;
    this.namespace = sequencer.namespace ?? "";
    this.traits = sequencer.traits;
    this.port = sequencer.port;
    this.#sequencer = sequencer;
    this.#limits = new Limits(this.port);
    const lineOf = ({ space, name }: Place): Line | undefined => {
      return this.#lines.get(keyOf(space, name));
    };
    this.#custody = new Custody(sequencer, lineOf);
    this.#withdrawals = new Withdrawals(this.port, lineOf);
    this.#sessions = new Sessions(sequencer, (session, reason) => {
      this.#onSessionEnd(session, reason);
    });
    this.#around = {
      port: this.port,
      limits: this.#limits,
      line: (place) => this.#line(place),
      readySession: (claim) => this.#sessions.ready(claim),
      session: (claim, limitMs) => this.#sessions.for(claim, limitMs),
      makeEntry: (claim, session) => this.#makeEntry(claim, session),
      withdraw: (entry, session, isAsked) => {
        return this.#withdrawals.withdraw(entry, session, isAsked);
      },
      glance: (place) => sequencer.list(place, "texts", GLANCE_MS).catch(() => null),
      onSettled: (acquisition, grant) => this.#onSettled(acquisition, grant),
    };
  }

  async acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy> {
    if (this.#isClosed) throw new ClosedError({ store: this.name });
    let late = 0;
    for (let attempt = claim; ; attempt = { ...claim, owner: this.port.random.id() }) {
      const acquisition = new Acquisition(attempt, wait, this.#around);
      this.#acquisitions.add(acquisition);
      const outcome = await acquisition.run();
      if (outcome.type !== "again") return outcome;
      if (this.#isClosed || wait?.ended) return { type: "busy", holder: null, mark: null };
      if (outcome.isLate) late += 1;
      if (late === MOST_LATE_GRANTS || (late > 0 && !wait)) {
        throw new StoreError(
          `The store answers more slowly than a lease of ${claim.ttlMs} ms lasts: raise ttlMs.`,
          { outcome: "not_applied", lockName: claim.name, store: this.name },
        );
      }
    }
  }

  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    return Promise.all(
      grants.map(({ grant, ttlMs }) => this.#renew(grant as SequencerGrant, ttlMs)),
    );
  }

  async release(
    given: Grant,
    withinMs: number,
    keep?: { readonly ttlMs: number; readonly meta: Meta },
  ): Promise<boolean> {
    const grant = given as SequencerGrant;
    const { entry, home, nextHome } = grant;
    grant.isGivenBack = true;
    const leaveNextHome = (): void => {
      if (!nextHome) return;
      // The entry may be in the next session already, and would live on with it.
      if (grant.hasMoved) void this.#withdrawals.withdraw(entry, nextHome, false);
      else nextHome.remove(entry);
    };
    if (home.isOver) {
      this.#custody.giveUp(grant);
      leaveNextHome();
      if (home.isAlone) void home.endInStore();
      return false;
    }
    this.#custody.drop(grant);
    const released = this.#withdrawals.release(entry, home, withinMs, keep).finally(leaveNextHome);
    // Without a mark it asks one thing at a time, and each within what is left.
    return keep ? within(this.port.timers, withinMs, released) : released;
  }

  async resume(claim: Claim, token: bigint, locator: string | null): Promise<Grant | null> {
    if (locator === null) return null;
    const { clock } = this.port;
    const endMs = clock.nowMs() + claim.storeTimeoutMs;
    const resumed = await this.#sequencer.resumeSession(locator, claim, claim.storeTimeoutMs);
    if (resumed?.entry.order !== token) return null;
    const { link, entry } = resumed;
    const sentMs = clock.nowMs();
    const proof = await link.prove([entry], endMs - sentMs);
    if (proof.type === "gone" || proof.missing.has(entry)) return null;
    const home = this.#sessions.adopt(link, claim.ttlMs, sentMs);
    home.add(entry);
    const grant = new SequencerGrant(entry, home);
    this.#custody.take(grant);
    return grant;
  }

  detach(given: Grant): void {
    const grant = given as SequencerGrant;
    this.#custody.drop(grant);
    this.#detached.add(grant.home);
  }

  onEvent(listener: (event: GoneEvent) => void): void {
    this.#custody.onGone = listener;
  }

  async inspect(space: Space, name: string): Promise<LockView> {
    const place = { space, name };
    return this.#view(place, await this.#sequencer.list(place, "texts", LOOK_MS));
  }

  async *list(space: Space, prefix: string): AsyncIterable<LockView> {
    for (const [name, listing] of await this.#sequencer.lines(space, prefix, LOOK_MS)) {
      yield await this.#view({ space, name }, listing);
    }
  }

  revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    return this.#sequencer.revoke({ space, name }, token, reason, LOOK_MS);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const acquisition of [...this.#acquisitions]) acquisition.giveUp();
    await within(this.port.timers, CLOSE_MS, this.#withdrawals.settled()).catch(() => {});
    this.#custody.close();
    this.#limits.stop();
    for (const line of [...this.#lines.values()]) line.close();
    // A detached lease goes on elsewhere, and its session with it.
    await this.#sessions.close((session) => this.#detached.has(session));
    await this.#sequencer.close();
  }

  async #renew(grant: SequencerGrant, ttlMs: number): Promise<Renewal> {
    // A renewal after the own deadline could revive what somebody else was promised.
    if (this.port.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired", detail: "" };
    }
    const isMoving = grant.nextHome !== null || ttlMs > grant.home.ttlMs;
    try {
      if (isMoving && !(await this.#move(grant, ttlMs))) {
        return { type: "gone", reason: "missing", detail: "" };
      }
      return await this.#renewHome(grant);
    } catch (error) {
      // A renewal for longer that failed must not cost what a plain one would have kept.
      if (isMoving) await this.#renewHome(grant).catch(() => {});
      return { type: "unknown", error };
    }
  }

  /** While it is not certain which session the entry is in, both must last. */
  async #renewHome(grant: SequencerGrant): Promise<Renewal> {
    const { home, nextHome } = grant;
    const proof = await home.renew();
    if (proof.type === "gone") return { type: "gone", reason: "session_ended", detail: "" };
    if (proof.missing.has(grant.entry)) return { type: "gone", reason: "missing", detail: "" };
    if (nextHome && grant.hasMoved) {
      const next = await nextHome.renew();
      if (next.type === "gone") return { type: "gone", reason: "session_ended", detail: "" };
      grant.extend(Math.min(home.deadlineMs, nextHome.deadlineMs));
    } else grant.extend(home.deadlineMs);
    return { type: "renewed", waiting: false };
  }

  /**
   * A session cannot be made longer, but an entry can be bound to one that is. Until that is
   * certain the entry may be in either, so both must last for as long as the grant is believed in.
   */
  async #move(grant: SequencerGrant, ttlMs: number): Promise<boolean> {
    const { entry, home } = grant;
    if (!grant.nextHome) {
      const opened = await this.#sessions.for({ ttlMs, alone: home.isAlone }, CALL_MS);
      // Meanwhile the grant was given back, or another renewal began to move it.
      if (grant.isGivenBack || grant.nextHome || grant.home !== home) {
        if (opened.isAlone) void opened.close();
        if (!grant.nextHome) return !grant.isGivenBack;
      } else {
        opened.add(entry);
        opened.hand();
        grant.nextHome = opened;
        grant.hasMoved = false;
      }
    }
    const next = grant.nextHome as Session;
    if (next.deadlineMs < grant.deadlineMs) await next.renew(true);
    if (grant.isGivenBack) return false;
    if (next.isOver && grant.hasMoved) return false;
    if (next.isOver || next.deadlineMs < grant.deadlineMs) {
      if (next.isOver) grant.nextHome = null;
      throw new StoreError("The session for the longer ttl is not ready.", {
        outcome: "not_applied",
      });
    }
    grant.hasMoved = true;
    const isThere = await next.link.adopt(entry, CALL_MS);
    if (grant.nextHome === next) {
      grant.home = next;
      grant.nextHome = null;
      // A late copy of the request that made the entry fits this session still.
      if (entry.isDoubtful) home.retire();
      home.remove(entry);
    }
    return isThere;
  }

  #makeEntry(claim: Claim, { link }: Session): OwnEntry {
    const { meta, ttlMs } = claim;
    const sinceMs = Math.round(this.port.clock.wallUs() / 1000);
    return link.makeEntry(claim, writeText({ meta, ttlMs, sinceMs }));
  }

  #onSettled(acquisition: Acquisition, grant: SequencerGrant | null): void {
    this.#acquisitions.delete(acquisition);
    if (grant) this.#custody.take(grant);
  }

  #line(place: Place): Line {
    const key = keyOf(place.space, place.name);
    let line = this.#lines.get(key);
    if (!line) {
      line = new Line(place, {
        port: this.port,
        sequencer: this.#sequencer,
        isHeldHere: (held, id) => this.#custody.has(held, id),
        onIdle: () => this.#lines.delete(key),
      });
      this.#lines.set(key, line);
    }
    return line;
  }

  #onSessionEnd(session: Session, reason: LossReason): void {
    this.#custody.dropAll(session, reason);
    for (const acquisition of [...this.#acquisitions]) {
      if (acquisition.session === session) acquisition.onSessionEnd();
    }
  }

  async #view(place: Place, listing: Listing): Promise<LockView> {
    const { entries, mark } = listing;
    const holders = entries.slice(0, holderCount(entries));
    const asked = [...new Set([...holders, ...(mark ? [mark] : [])].map(({ session }) => session))];
    const remaining = await this.#sequencer.remainingMs(asked, LOOK_MS);
    const bySession = new Map(asked.map((session, index) => [session, remaining[index] ?? 0]));
    const nowMs = this.port.clock.wallUs() / 1000;
    return lockView(place, listing, nowMs, (session) => bySession.get(session) ?? 0);
  }
}
