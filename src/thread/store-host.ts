import type { Busy, Claim, Grant, LockView, Store } from "../contract/store.js";
import { StoreError } from "../errors/index.js";
import { AcquireWait } from "../lease/acquire-wait.js";
import { LeaseRenewer } from "../lease/lease-renewer.js";
import { Limits } from "../time/limits.js";
import { within } from "../time/timers.js";
import { copyOfError, errorOf } from "./error-copy.js";
import { EXIT_MS } from "./exit-release.js";
import { HostedGrant, type HostedGrantOwner } from "./hosted-grant.js";
import type { CallName, Calls, FromThread, GrantCopy, RenewalCopy, ToThread } from "./messages.js";
import type { Outbox } from "./outbox.js";

/** So many times in the life of a grant, the thread looks whether the caller has taken it. */
const LOOKS = 12;

/** A call of the other thread, answered now or later; `id` is that of the call. */
type Answers = {
  readonly [Name in Exclude<CallName, "open">]: (
    id: number,
    ...args: Parameters<Calls[Name]>
  ) => ReturnType<Calls[Name]> | Promise<ReturnType<Calls[Name]>>;
};

/**
 * The store in its own thread, with the lease renewer that renews its grants: answers the calls of
 * the other thread. A grant that the caller has not taken yet is not renewed, so a caller that is
 * stuck costs the other waiters one ttl.
 */
export class StoreHost implements HostedGrantOwner {
  readonly #store: Store;
  readonly #outbox: Outbox<FromThread>;
  readonly #leaseRenewer: LeaseRenewer;
  readonly #grants = new Map<number, HostedGrant>();
  /** The looks for grants that the caller has not taken yet. */
  readonly #looks: Limits;
  readonly #lists = new Map<number, AsyncIterator<LockView>>();
  readonly #cancels = new Map<number, () => void>();
  #numbers = 0;
  #callsUnderWay = 0;
  #onIdle: () => void = () => {};
  #isAbandoned = false;
  #closed: Promise<void> | undefined;

  constructor(store: Store, outbox: Outbox<FromThread>) {
    this.#store = store;
    this.#outbox = outbox;
    this.#leaseRenewer = new LeaseRenewer(store);
    this.#looks = new Limits(store.runtime);
  }

  /** `onExit`: the process exits, and all that can be released is. */
  receive(message: ToThread, onExit: () => void): void {
    switch (message.type) {
      case "call":
        void this.#answer(message);
        break;
      case "cancel":
        this.#cancels.get(message.id)?.();
        break;
      case "keep": {
        const hosted = this.#grants.get(message.grant);
        const { endMs, ...terms } = message.terms;
        const maxHoldMs = endMs - this.#store.runtime.clock.nowMs();
        if (hosted && !hosted.held?.isDetached) this.#keep(hosted, { ...terms, maxHoldMs });
        break;
      }
      case "detach": {
        const hosted = this.#grants.get(message.grant);
        if (!hosted?.held) break;
        this.#looks.remove(hosted);
        this.#leaseRenewer.detach(hosted.held);
        break;
      }
      case "endList":
        void this.#lists
          .get(message.list)
          ?.return?.()
          .catch(() => {});
        this.#lists.delete(message.list);
        break;
      case "exit":
        void this.#releaseAll().then(onExit);
    }
  }

  /** Closes the store. Its grants are no longer renewed. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /**
   * Ends all grants for the caller, for a reason that lies here, then gives them back. Grants that
   * calls under way still bring are given back, too: the caller never hears of them.
   */
  async abandon(detail: string): Promise<void> {
    this.#isAbandoned = true;
    const mine = this.#ownGrants();
    // Before the first release: the caller may rely on none of them by then.
    for (const hosted of mine) hosted.onLost("session_ended", detail);
    const released = Promise.all([this.#release(mine), this.#releaseAll()]);
    // A store that failed may never answer a call.
    await within(this.#store.runtime.timers, EXIT_MS, released).catch(() => {});
    await this.close();
  }

  async #answer({ id, name, args }: ToThread & { type: "call" }): Promise<void> {
    this.#callsUnderWay += 1;
    try {
      const answer = this.#answers[name as keyof Answers] as (
        id: number,
        ...args: unknown[]
      ) => unknown;
      this.#outbox.post({ type: "answer", id, value: await answer(id, ...args) });
    } catch (error) {
      this.#outbox.post({ type: "failure", id, error: copyOfError(error) });
    }
    this.#callsUnderWay -= 1;
    if (this.#callsUnderWay === 0) this.#onIdle();
  }

  readonly #answers: Answers = {
    acquire: (id, claim, untilMs) => this.#acquire(id, claim, untilMs),
    renew: (_, asked) => this.#renew(asked),
    release: (_, number, withinMs, keep) => {
      const hosted = this.#grants.get(number);
      // Gone, and given back by the lease renewer.
      if (!hosted) return false;
      this.#forget(hosted);
      return this.#store.release(hosted.grant, withinMs, keep);
    },
    resume: async (_, claim, token, locator) => {
      const grant = await this.#store.resume(claim, token, locator);
      return grant && this.#adopt(grant);
    },
    inspect: (_, space, name) => this.#store.inspect(space, name),
    list: (_, space, prefix) => {
      const list = ++this.#numbers;
      this.#lists.set(list, this.#store.list(space, prefix)[Symbol.asyncIterator]());
      return list;
    },
    next: async (_, list) => {
      const next = await this.#lists.get(list)?.next();
      return next && !next.done ? next.value : null;
    },
    revoke: (_, space, name, token, reason) => this.#store.revoke(space, name, token, reason),
    explain: async (_, copy) => {
      const error = errorOf(copy) as Parameters<NonNullable<Store["explain"]>>[0];
      const explained = (await this.#store.explain?.(error)) ?? error;
      return explained === error ? null : copyOfError(explained);
    },
    examine: async (id, ttlMs) => {
      const controller = new AbortController();
      this.#cancels.set(id, () => controller.abort());
      try {
        const empty = { store: this.#store.name, findings: [], failureCases: [] };
        return (await this.#store.examine?.({ ttlMs, signal: controller.signal })) ?? empty;
      } finally {
        this.#cancels.delete(id);
      }
    },
    now: () => this.#store.runtime.clock.exactMs(),
    close: () => this.close(),
  };

  async #acquire(id: number, claim: Claim, untilMs: number | null): Promise<GrantCopy | Busy> {
    const { runtime } = this.#store;
    if (untilMs === null) return this.#ask(claim, null);
    const waitMs = untilMs - runtime.clock.nowMs();
    const wait = new AcquireWait(runtime, waitMs, undefined, (holder, ahead, grantsInMs) => {
      this.#outbox.offer({ type: "report", id, holder, ahead, grantsInMs });
    });
    this.#cancels.set(id, () => wait.end("withdrawn"));
    try {
      return await this.#ask(claim, wait);
    } finally {
      this.#cancels.delete(id);
      wait.settle();
    }
  }

  /** A grant that ended on its way is asked for again, if the caller may wait. */
  async #ask(claim: Claim, wait: AcquireWait | null): Promise<GrantCopy | Busy> {
    for (let asked = claim; ; asked = { ...claim, owner: this.#store.runtime.random.id() }) {
      const result = await this.#store.acquire(asked, wait);
      if (result.type === "busy") return result;
      const copy = await this.#adopt(result);
      if (copy) return copy;
      if (wait?.ended !== false) return { type: "busy", holder: null, mark: null };
    }
  }

  async #renew(asked: Parameters<Calls["renew"]>[0]): Promise<RenewalCopy[]> {
    const known = asked.map(({ grant, ttlMs }) => ({ hosted: this.#grants.get(grant), ttlMs }));
    const sent = known.flatMap(({ hosted, ttlMs }) =>
      hosted ? [{ grant: hosted.grant, ttlMs }] : [],
    );
    const renewals = [...(await this.#store.renew(sent))];
    return known.map(({ hosted }): RenewalCopy => {
      const renewal = hosted ? renewals.shift() : undefined;
      // Its end was told by a message before, unless the caller has released it.
      if (!renewal) return { type: "ended" };
      if (renewal.type !== "unknown") return renewal;
      return { type: "unknown", error: copyOfError(renewal.error) };
    });
  }

  /** Until the caller has taken it, a new grant is not renewed. Null if the grant has ended. */
  async #adopt(grant: Grant): Promise<GrantCopy | null> {
    if (this.#isAbandoned) {
      await this.#store.release(grant, EXIT_MS).catch(() => {});
      throw new StoreError("The store has failed in its thread.", { outcome: "not_applied" });
    }
    const hosted = new HostedGrant(++this.#numbers, grant, this.#outbox, this);
    const { ttlMs } = grant.claim;
    const terms = { ttlMs, renew: false, graceMs: 0, maxHoldMs: Number.POSITIVE_INFINITY };
    hosted.held = this.#leaseRenewer.keep(grant, hosted, terms);
    if (!hosted.held) return null;
    this.#grants.set(hosted.id, hosted);
    this.#lookLater(hosted);
    return hosted.copy;
  }

  onLook(hosted: HostedGrant): void {
    const { taken } = hosted;
    if (!taken) return this.#lookLater(hosted);
    this.#keep(hosted, { ...taken, renew: true, maxHoldMs: Number.POSITIVE_INFINITY });
  }

  onEnd(hosted: HostedGrant): void {
    this.#grants.delete(hosted.id);
    this.#looks.remove(hosted);
  }

  #lookLater(hosted: HostedGrant): void {
    const { deadlineMs, claim } = hosted.grant;
    const nowMs = this.#store.runtime.clock.nowMs();
    // A handoff may begin with less than its ttl; at the end of a life, no look is of use.
    hosted.dueMs = nowMs + Math.max(Math.min(deadlineMs - nowMs, claim.ttlMs) / LOOKS, 1);
    if (hosted.dueMs < deadlineMs) this.#looks.add(hosted);
  }

  #keep(hosted: HostedGrant, options: Parameters<LeaseRenewer["keep"]>[2]): void {
    this.#looks.remove(hosted);
    if (hosted.held) this.#leaseRenewer.drop(hosted.held);
    hosted.held = this.#leaseRenewer.keep(hosted.grant, hosted, options);
    // Its deadline has passed, unnoticed.
    if (!hosted.held) hosted.onLost("expired", "");
  }

  #forget(hosted: HostedGrant): void {
    this.onEnd(hosted);
    if (hosted.held) this.#leaseRenewer.drop(hosted.held);
  }

  /** The process exits. Waits that are withdrawn may end with a grant all the same. */
  async #releaseAll(): Promise<void> {
    do {
      for (const cancel of this.#cancels.values()) cancel();
      await this.#release(this.#ownGrants());
      if (this.#callsUnderWay > 0) {
        await new Promise<void>((resume) => {
          this.#onIdle = resume;
        });
      }
    } while (this.#ownGrants().length > 0);
  }

  /** Detached grants belong to another process. */
  #ownGrants(): HostedGrant[] {
    return [...this.#grants.values()].filter(({ held }) => !held?.isDetached);
  }

  async #release(grants: readonly HostedGrant[]): Promise<void> {
    for (const hosted of grants) this.#forget(hosted);
    await Promise.allSettled(grants.map(({ grant }) => this.#store.release(grant, EXIT_MS)));
  }

  async #close(): Promise<void> {
    this.#looks.stop();
    for (const hosted of [...this.#grants.values()]) this.#forget(hosted);
    await this.#leaseRenewer.stop();
    await this.#store.close();
  }
}
