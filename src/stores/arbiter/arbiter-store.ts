/**
 * The family's shared part: turns an arbiter (atomic commands, pushes) into a store.
 *
 * Who may believe what: an `ArbiterGrant` stands for a holder in the ledger. Its deadline is always
 * counted from a request of this client that the store answered, or from a push proven fresh, and
 * lies before the ledger's expiry; so this client stops believing before the ledger may grant to
 * another. Only this client's release, a revoke or the expiry end a holder, and a renewal never
 * makes one.
 */
import { ClosedError, StoreError } from "../../errors.js";
import type { HandoffEvent } from "../../events.js";
import { events } from "../../publish.js";
import type { Push, Release, Renew, Touch } from "../../rules/ledger-command.js";
import { marginMs } from "../../rules/margin.js";
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
import { type Timer, within } from "../../time/timers.js";
import { Acquisition, type Outcome, type Surroundings } from "./acquisition.js";
import type { Arbiter } from "./arbiter.js";
import { ArbiterGrant } from "./arbiter-grant.js";
import { type Answer, Channel } from "./channel.js";
import { lockView, markView } from "./views.js";
import { Vigil } from "./vigil.js";
import { Withdrawal, type WithdrawalDuties } from "./withdrawal.js";

export interface ArbiterOptions {
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly claimMs?: number;
}

const LEAST_CLAIM_MS = 2_000;
/**
 * So many answers in a row that came after the lease was over: the ttl is too short for this store.
 */
const MOST_LATE_GRANTS = 3;
const LONGEST_CLEANUP_MS = 30_000;
const CLOSE_MS = 5_000;

export class ArbiterStore implements Store {
  readonly name: string;
  readonly traits: Traits;
  readonly port: Port;
  readonly #arbiter: Arbiter;
  readonly #limits: Limits;
  readonly #channel: Channel;
  readonly #client: string;
  readonly #around: Surroundings;
  readonly #withdrawals: WithdrawalDuties;
  readonly #acquisitions = new Map<string, Acquisition>();
  readonly #grants = new Map<string, ArbiterGrant>();
  readonly #vigils = new Map<string, Vigil>();
  /** Names whose last handoff is to be checked once. */
  readonly #checks = new Map<string, Timer>();
  readonly #cleanups = new Set<Promise<unknown>>();
  /** The tombstones of withdrawals that were not answered yet, by owner. */
  readonly #leaving = new Map<string, number>();
  #seenToken = 0;
  #lastMeta: Meta | undefined;
  #lastMetaText = "";
  #isListening = false;
  #isClosed = false;
  #onGone: (event: GoneEvent) => void = () => {};

  constructor(arbiter: Arbiter, { claimMs }: ArbiterOptions = {}) {
    this.name = arbiter.name;
    this.traits = arbiter.traits;
    this.port = arbiter.port;
    this.#arbiter = arbiter;
    this.#limits = new Limits(arbiter.port);
    this.#channel = new Channel(arbiter, this.#limits);
    this.#client = arbiter.port.random.id();
    this.#around = {
      port: arbiter.port,
      channel: this.#channel,
      limits: this.#limits,
      client: this.#client,
      isLocal: arbiter.isLocal,
      believesPushes: arbiter.believesPushes,
      claimMs: (ttlMs) => Math.min(ttlMs, claimMs ?? Math.max(LEAST_CLAIM_MS, ttlMs / 6)),
      seenToken: () => this.#seenToken,
      metaText: (meta) => this.#metaText(meta),
      onQueued: (acquisition, ahead, dueMs) => {
        this.#vigil(acquisition.key).add(acquisition, ahead, dueMs);
      },
      onSettled: (acquisition, grant) => this.#onSettled(acquisition, grant),
      isLive: (grant) => this.#isLive(grant),
      onHandoff: ({ space, name }, token) => {
        if (!events.handoff.hasSubscribers) return;
        const about = { name, space, store: this.name, token: BigInt(token) };
        events.handoff.publish({ ...about, isLocal: false } satisfies HandoffEvent);
      },
      withdraw: (key, owner, tombstoneUs, ttlMs) => {
        this.#cleanUp(key, owner, tombstoneUs, ttlMs);
      },
      onLost: (grant, reason, detail) => this.#lose(grant, reason, detail),
    };
    this.#withdrawals = {
      port: arbiter.port,
      channel: this.#channel,
      onHandedOff: (key, claimMs) => this.#checkLater(key, claimMs),
      onLeft: (owner) => this.#onLeft(owner),
    };
  }

  acquire(claim: Claim, wait: Wait | null): Promise<Grant | Busy> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new ClosedError({ store: this.name });
      this.#listen();
      this.#ask(claim, wait, 0, resolve, reject);
    });
  }

  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    return Promise.all(grants.map(({ grant, ttlMs }) => this.#renew(grant as ArbiterGrant, ttlMs)));
  }

  async resume(claim: Claim, token: bigint): Promise<Grant | null> {
    const key = keyOf(claim.space, claim.name);
    const untilMs = this.port.clock.nowMs() + claim.storeTimeoutMs;
    const { reply, sentMs } = await this.#sendRenew(key, claim.owner, claim.ttlMs, untilMs);
    if (reply.type !== "renewed" || BigInt(reply.token) !== token) return null;
    const deadlineMs = deadlineOf(sentMs, reply.remainingUs, claim.ttlMs);
    if (this.port.clock.exactMs() >= deadlineMs) return null;
    // Nobody here knows how its acquire was answered, but it was sent before this: no copy of it
    // acts for longer than one that would be sent now.
    const windowMs = Math.min(claim.ttlMs, claim.storeTimeoutMs);
    const tombstoneUs = this.#channel.time(key).storeUs(sentMs + windowMs) + 1;
    const grant = new ArbiterGrant(claim, key, reply, deadlineMs, tombstoneUs);
    this.#adopt(grant);
    return grant;
  }

  release(grant: Grant, withinMs: number, keep?: { ttlMs: number; meta: Meta }): Promise<boolean> {
    const { key, claim, tombstoneUs } = grant as ArbiterGrant;
    const mark = keep ? { ttlUs: keep.ttlMs * 1000, meta: JSON.stringify(keep.meta) } : null;
    const command: Release = { type: "release", key, owner: claim.owner, tombstoneUs, keep: mark };
    (grant as ArbiterGrant).isGivenBack = true;
    return new Promise((resolve, reject) => {
      const withdrawal = new Withdrawal(command, withinMs, this.#withdrawals, resolve, reject);
      withdrawal.start(this.#limits);
    });
  }

  onEvent(listener: (event: GoneEvent) => void): void {
    this.#onGone = listener;
  }

  async inspect(space: Space, name: string): Promise<LockView> {
    const key = keyOf(space, name);
    const { reply } = await this.#channel.send({ type: "inspect", key });
    return lockView(key, reply);
  }

  async *list(space: Space, prefix: string): AsyncIterable<LockView> {
    for await (const { key, view } of this.#arbiter.list(keyOf(space, prefix))) {
      yield lockView(key, view);
    }
  }

  async revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    const key = keyOf(space, name);
    const { reply } = await this.#channel.send({
      type: "revoke",
      key,
      token: Number(token),
      reason,
    });
    return reply.done;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const acquisition of [...this.#acquisitions.values()]) acquisition.giveUp();
    for (const timer of this.#checks.values()) timer.cancel();
    const cleaned = Promise.allSettled([...this.#cleanups]);
    await within(this.port.timers, CLOSE_MS, cleaned).catch(() => {});
    this.#limits.stop();
    await this.#arbiter.close();
  }

  /** So many `late` answers in a row came when the lease was over already. */
  #ask(
    claim: Claim,
    wait: Wait | null,
    late: number,
    resolve: (outcome: Grant | Busy) => void,
    reject: (error: unknown) => void,
  ): void {
    const key = keyOf(claim.space, claim.name);
    const onOutcome = (outcome: Outcome): void => {
      if (outcome.type !== "again") return resolve(outcome);
      const again = { ...claim, owner: this.port.random.id() };
      if (outcome.reason !== "late") return this.#ask(again, wait, 0, resolve, reject);
      if (wait && late + 1 < MOST_LATE_GRANTS) {
        return this.#ask(again, wait, late + 1, resolve, reject);
      }
      const about = { outcome: "not_applied", lockName: claim.name, store: this.name } as const;
      const why = `The store answers more slowly than a lease of ${claim.ttlMs} ms lasts`;
      reject(new StoreError(`${why}: raise ttlMs.`, about));
    };
    const acquisition = new Acquisition(key, claim, wait, this.#around, onOutcome, reject);
    this.#acquisitions.set(claim.owner, acquisition);
    acquisition.start();
  }

  async #renew(grant: ArbiterGrant, ttlMs: number): Promise<Renewal> {
    // A renewal after the own deadline could revive what somebody else was promised.
    if (this.port.clock.exactMs() >= grant.deadlineMs) {
      return { type: "gone", reason: "expired", detail: "" };
    }
    let answer: Answer<Renew>;
    try {
      answer = await this.#sendRenew(grant.key, grant.claim.owner, ttlMs, grant.deadlineMs);
    } catch (error) {
      return { type: "unknown", error };
    }
    const { reply, sentMs } = answer;
    switch (reply.type) {
      case "renewed":
        if (BigInt(reply.token) !== grant.token) {
          return { type: "gone", reason: "replaced", detail: "" };
        }
        grant.extend(deadlineOf(sentMs, reply.remainingUs, ttlMs));
        return { type: "renewed", waiting: reply.waiting };
      case "gone":
        return reply;
      case "stale":
        return { type: "unknown", error: new StoreError("Too late.", { outcome: "not_applied" }) };
    }
  }

  async #sendRenew(
    key: string,
    owner: string,
    ttlMs: number,
    untilMs: number,
  ): Promise<Answer<Renew>> {
    await this.#channel.greet(key);
    return this.#channel.send({
      type: "renew",
      key,
      owner,
      ttlUs: Math.ceil(ttlMs * 1000),
      notAfterUs: this.#channel.time(key).storeUs(untilMs),
      seenToken: this.#seenToken,
    });
  }

  #onSettled(acquisition: Acquisition, grant: ArbiterGrant | null): void {
    const { key, owner } = acquisition;
    this.#acquisitions.delete(owner);
    const vigil = this.#vigils.get(key);
    vigil?.remove(acquisition);
    if (vigil?.isIdle) this.#vigils.delete(key);
    if (grant) this.#adopt(grant);
  }

  #adopt(grant: ArbiterGrant): void {
    this.#grants.set(grant.claim.owner, grant);
    this.#seenToken = Math.max(this.#seenToken, Number(grant.token) + grant.span - 1);
  }

  /** Acquisitions of one lock share one frozen object: its text is made once. */
  #metaText(meta: Meta): string {
    if (meta !== this.#lastMeta) {
      this.#lastMeta = meta;
      this.#lastMetaText = JSON.stringify(meta);
    }
    return this.#lastMetaText;
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    this.#arbiter.listen(
      this.#client,
      (push) => this.#onPush(push),
      () => {
        for (const vigil of this.#vigils.values()) void vigil.touch();
        for (const grant of this.#grants.values()) void this.#lookAfter(grant);
      },
    );
  }

  /** A revocation may have gone unheard; to confirm once more changes nothing, but tells. */
  async #lookAfter(grant: ArbiterGrant): Promise<void> {
    try {
      const { key, claim, deadlineMs } = grant;
      const confirm = { type: "confirm", key, owner: claim.owner } as const;
      const { reply } = await this.#channel.send(confirm);
      if (reply.type !== "gone") return;
      this.#lose(grant, reply.reason, reply.detail);
      // A store that lost the grant may have lost its token: a renewal, in vain, carries it there.
      if (reply.reason !== "revoked") await this.#sendRenew(key, claim.owner, 0, deadlineMs);
    } catch {
      // It was only a look: renewals ask again, too.
    }
  }

  #onPush(push: Push): void {
    if (push.type === "revoked") {
      const grant = this.#grants.get(push.owner);
      if (grant?.token === BigInt(push.token)) this.#lose(grant, "revoked", push.reason);
      // The word may overtake the grant itself: its owner will never hold again.
      else this.#acquisitions.get(push.owner)?.onRevoked();
      return;
    }
    if (push.type === "marked") {
      const { owner, token, meta } = push;
      // How long the mark stays is for those who ask; whoever waited only needs to know that it is.
      this.#acquisitions.get(owner)?.onMark(markView({ token, meta, remainingUs: 0 }));
      return;
    }
    const { owner } = push.grant;
    const acquisition = this.#acquisitions.get(owner);
    if (acquisition) acquisition.onPush(push.grant);
    else this.#refuse(push.key, owner);
  }

  #onTouched(key: string, { reply, sentMs, nowUs }: Answer<Touch>): void {
    for (const grant of reply.grants) {
      const acquisition = this.#acquisitions.get(grant.owner);
      if (acquisition) acquisition.onMissedGrant(grant, sentMs, nowUs);
      else this.#refuse(key, grant.owner);
    }
  }

  /**
   * A grant for somebody who is gone goes back at once. An owner that holds here does so by this
   * very grant or by a later one, after the claim had lapsed: then the push is late, and nothing
   * goes back.
   */
  #refuse(key: string, owner: string): void {
    if (!this.#grants.has(owner)) this.#cleanUp(key, owner, this.#leaving.get(owner) ?? 0, 0);
  }

  #vigil(key: string): Vigil {
    let vigil = this.#vigils.get(key);
    if (!vigil) {
      vigil = new Vigil(key, {
        port: this.port,
        touch: (name) => this.#touch(name),
        onTouched: (name, answer) => this.#onTouched(name, answer),
      });
      this.#vigils.set(key, vigil);
    }
    return vigil;
  }

  #touch(key: string): Answer<Touch> | Promise<Answer<Touch>> {
    return this.#channel.send({ type: "touch", key, client: this.#client });
  }

  /**
   * A handoff may have gone to a process that died: whoever released looks once whether it took.
   */
  #checkLater(key: string, delayMs: number): void {
    if (this.#isClosed || this.#checks.has(key)) return;
    const timer = this.port.timers.after(delayMs + 1, async () => {
      this.#checks.delete(key);
      try {
        this.#onTouched(key, await this.#touch(key));
      } catch {
        // It was only a look: the waiters themselves ask again, too.
      }
    });
    this.#checks.set(key, timer);
  }

  #isLive(grant: ArbiterGrant): boolean {
    return !grant.isGivenBack && this.#grants.get(grant.claim.owner) === grant;
  }

  #lose(grant: ArbiterGrant, reason: GoneEvent["reason"], detail: string): void {
    if (!this.#isLive(grant)) return;
    this.#grants.delete(grant.claim.owner);
    this.#onGone({ type: "gone", grant, reason, detail });
    // The acquisition may be so fresh that nobody keeps it yet.
    grant.end();
  }

  /**
   * Repeats the release of an owner until it is answered, or until its grant would be over anyway.
   */
  #cleanUp(key: string, owner: string, tombstoneUs: number, ttlMs: number): void {
    const limitMs = Math.min(Math.max(ttlMs, CLOSE_MS), LONGEST_CLEANUP_MS);
    const command: Release = { type: "release", key, owner, tombstoneUs, keep: null };
    const cleanup = new Promise<unknown>((resolve) => {
      new Withdrawal(command, limitMs, this.#withdrawals, resolve, resolve).start(null);
    });
    this.#cleanups.add(cleanup);
    if (tombstoneUs > 0) this.#leaving.set(owner, tombstoneUs);
    void cleanup.finally(() => {
      this.#cleanups.delete(cleanup);
      this.#leaving.delete(owner);
    });
  }

  #onLeft(owner: string): void {
    if (this.#grants.get(owner)?.isGivenBack) this.#grants.delete(owner);
  }
}

/**
 * A renewal never shortens: more may be left than was asked for, and so may the clocks drift apart.
 */
function deadlineOf(sentMs: number, remainingUs: number, ttlMs: number): number {
  const remainingMs = remainingUs / 1000;
  return sentMs + remainingMs - marginMs(Math.max(ttlMs, remainingMs));
}
