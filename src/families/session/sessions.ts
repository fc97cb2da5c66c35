import type { Claim } from "../../contract/store.js";
import { ClosedError, StoreError } from "../../errors/index.js";
import { TimeLimitError, within } from "../../time/timers.js";
import type { Sequencer, StoreSession } from "./sequencer.js";
import { Session, type SessionOptions } from "./session.js";

/** The sessions of one client: one per ttl, plus one for each claim with `ownSession`. */
export class Sessions {
  readonly #sequencer: Sequencer;
  readonly #shared = new Map<number, Session>();
  readonly #opening = new Map<number, Promise<Session>>();
  readonly #all = new Set<Session>();
  #isClosed = false;

  constructor(sequencer: Sequencer) {
    this.#sequencer = sequencer;
  }

  /** Returns the session that `for` would return, if that needs no request; otherwise null. */
  ready({ ttlMs, ownSession }: Pick<Claim, "ttlMs" | "ownSession">): Session | null {
    const session = ownSession ? undefined : this.#shared.get(ttlMs);
    return session?.isOpen && session.isFresh ? session : null;
  }

  /** Returns an open session, renewed or opened if necessary. An error means "unknown". */
  async for(
    { ttlMs, ownSession }: Pick<Claim, "ttlMs" | "ownSession">,
    limitMs: number,
  ): Promise<Session> {
    if (ownSession) return this.#open(ttlMs, true, limitMs);
    const session = this.#shared.get(ttlMs);
    if (session?.isOpen) {
      if (session.isFresh) return session;
      await this.#within(limitMs, session.renew(true));
      if (session.isOpen) return session;
    }
    let opening = this.#opening.get(ttlMs);
    if (!opening) {
      opening = this.#open(ttlMs, false, limitMs).finally(() => this.#opening.delete(ttlMs));
      this.#opening.set(ttlMs, opening);
    }
    return opening;
  }

  /** Takes over a session that another process opened. */
  adopt(storeSession: StoreSession, ttlMs: number, sentMs: number): Session {
    const session = this.#make(storeSession, { ttlMs, isDedicated: true, sentMs });
    session.hand();
    return session;
  }

  /** Ends all sessions, except those that `isLeft` says another process may resume. */
  async close(isLeft: (session: Session) => boolean): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      [...this.#all].map((session) => (isLeft(session) ? session.abandon() : session.close())),
    );
    this.#all.clear();
  }

  async #open(ttlMs: number, isDedicated: boolean, limitMs: number): Promise<Session> {
    const sentMs = this.#sequencer.runtime.clock.nowMs();
    const storeSession = await this.#sequencer.openSession(ttlMs, limitMs);
    const session = this.#make(storeSession, { ttlMs, isDedicated, sentMs });
    if (this.#isClosed) {
      await session.close();
      throw new ClosedError({ store: this.#sequencer.name });
    }
    if (!isDedicated) this.#shared.set(ttlMs, session);
    return session;
  }

  /** Limits how long the caller waits; the session's own request may take longer. */
  #within<T>(limitMs: number, work: Promise<T>): Promise<T> {
    return within(this.#sequencer.runtime.timers, limitMs, work).catch((cause: unknown) => {
      if (!(cause instanceof TimeLimitError)) throw cause;
      const message = `${this.#sequencer.name}: ${cause.message}`;
      throw new StoreError(message, { outcome: "unknown", cause });
    });
  }

  #make(storeSession: StoreSession, options: SessionOptions): Session {
    const session = new Session(storeSession, options, this.#sequencer.runtime, (over) => {
      this.#all.delete(over);
      if (this.#shared.get(over.ttlMs) === over) this.#shared.delete(over.ttlMs);
    });
    this.#all.add(session);
    return session;
  }
}
