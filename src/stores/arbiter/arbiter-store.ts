/**
 * The family's shared part: turns an arbiter (atomic commands, pushes) into a store.
 *
 * Who may believe what: an `ArbiterGrant` stands for a holder in the ledger. Its deadline is always
 * counted from a request of this client that the store answered, or from a push proven fresh, and
 * lies before the ledger's expiry; so this client stops believing before the ledger may grant to
 * another. Only this client's release, a revoke or the expiry end a holder, and a renewal never
 * makes one.
 */
import { ClosedError, InvalidOptionError, StoreError } from "../../errors.js";
import type { Push, Release } from "../../rules/ledger-command.js";
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
import { Acquisition, type Outcome } from "./acquisition.js";
import type { Arbiter } from "./arbiter.js";
import type { ArbiterGrant } from "./arbiter-grant.js";
import { Channel } from "./channel.js";
import { Cleanups } from "./cleanups.js";
import { Grants } from "./grants.js";
import { Renewals } from "./renewals.js";
import type { Surroundings } from "./surroundings.js";
import { lockView, markView } from "./views.js";
import { Waiting } from "./waiting.js";
import { Withdrawal, type WithdrawalDuties } from "./withdrawal.js";

/** How the family treats this arbiter. */
export interface ArbiterOptions {
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
}

const USUAL_OFFER_MS = 2_000;
/** With less, a client that waits would do nothing but touch. */
const LEAST_OFFER_MS = 10;
/**
 * So many answers in a row that came after the lease was over: the ttl is too short for this store.
 */
const MOST_LATE_GRANTS = 3;
/** `close` waits for the cleanups until the store has been silent for so long. */
const LONGEST_SILENCE_MS = 1_000;

export class ArbiterStore implements Store {
  readonly name: string;
  readonly namespace: string;
  readonly traits: Traits;
  readonly port: Port;
  readonly #arbiter: Arbiter;
  readonly #limits: Limits;
  readonly #channel: Channel;
  readonly #client: string;
  readonly #grants = new Grants();
  readonly #renewals: Renewals;
  readonly #waiting: Waiting;
  readonly #withdrawals: WithdrawalDuties;
  readonly #cleanups: Cleanups;
  readonly #around: Surroundings;
  #lastMeta: Meta | undefined;
  #lastMetaText = "";
  #isListening = false;
  #isClosed = false;

  constructor(arbiter: Arbiter, { offerMs }: ArbiterOptions = {}) {
    if (offerMs !== undefined && !(offerMs >= LEAST_OFFER_MS)) {
      throw new InvalidOptionError("offerMs", offerMs, `must be at least ${LEAST_OFFER_MS}`);
    }
    this.name = arbiter.name;
    this.namespace = arbiter.namespace ?? "";
    this.traits = arbiter.traits;
    this.port = arbiter.port;
    this.#arbiter = arbiter;
    this.#limits = new Limits(arbiter.port);
    this.#channel = new Channel(arbiter, this.#limits);
    this.#client = arbiter.port.random.id();
    this.#renewals = new Renewals(arbiter.port, this.#channel, this.#grants, this.#client);
    this.#waiting = new Waiting({
      port: arbiter.port,
      touch: (key) => this.#channel.send({ type: "touch", key, client: this.#client }),
      onUnclaimed: (key, owner) => this.#refuse(key, owner),
    });
    this.#withdrawals = {
      port: arbiter.port,
      channel: this.#channel,
      onHandedOff: (key, windowMs) => this.#waiting.checkLater(key, windowMs),
      onMore: (key) => this.#waiting.goOn(key),
      onLeft: (owner) => this.#grants.onLeft(owner),
    };
    this.#cleanups = new Cleanups(this.#withdrawals);
    this.#around = {
      port: arbiter.port,
      channel: this.#channel,
      limits: this.#limits,
      client: this.#client,
      isLocal: arbiter.isLocal,
      believesPushes: arbiter.believesPushes,
      offerMs: (ttlMs) => Math.min(ttlMs, offerMs ?? Math.max(USUAL_OFFER_MS, ttlMs / 6)),
      seenToken: () => this.#grants.seenToken,
      metaText: (meta) => this.#metaText(meta),
      onQueued: (acquisition, ahead, dueMs) => this.#waiting.queue(acquisition, ahead, dueMs),
      onSettled: (acquisition, grant) => {
        this.#waiting.leave(acquisition);
        if (grant) this.#grants.adopt(grant);
      },
      isLive: (grant) => this.#grants.isLive(grant),
      withdraw: (key, owner, tombstoneUs, ttlMs) => {
        this.#cleanups.start(key, owner, tombstoneUs, ttlMs);
      },
      onLost: (grant, reason, detail) => this.#grants.lose(grant, reason, detail),
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
    const renewed = grants.map(({ grant, ttlMs }) => {
      return this.#renewals.renew(grant as ArbiterGrant, ttlMs);
    });
    return Promise.all(renewed);
  }

  resume(claim: Claim, token: bigint): Promise<Grant | null> {
    this.#listen();
    return this.#renewals.resume(claim, token);
  }

  detach(grant: Grant): void {
    this.#grants.forget(grant as ArbiterGrant);
  }

  release(grant: Grant, withinMs: number, keep?: { ttlMs: number; meta: Meta }): Promise<boolean> {
    const { key, claim, tombstoneUs } = grant as ArbiterGrant;
    const mark = keep && {
      ttlUs: Math.ceil(keep.ttlMs * 1000),
      meta: JSON.stringify(keep.meta),
    };
    const command: Release = {
      type: "release",
      key,
      owner: claim.owner,
      tombstoneUs,
      keep: mark ?? null,
    };
    (grant as ArbiterGrant).isGivenBack = true;
    return new Promise((resolve, reject) => {
      const withdrawal = new Withdrawal(command, withinMs, this.#withdrawals, resolve, reject);
      withdrawal.start(this.#limits);
    });
  }

  onEvent(listener: (event: GoneEvent) => void): void {
    this.#grants.onGone = listener;
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
    // Beyond what a ledger counts to: nobody has it, and as a number it may be somebody's.
    if (token < 0n || token > Number.MAX_SAFE_INTEGER) return false;
    const key = keyOf(space, name);
    const { reply } = await this.#channel.send({
      type: "revoke",
      key,
      token: Number(token),
      reason,
    });
    return reply.done;
  }

  async explain(error: StoreError): Promise<StoreError> {
    return (await this.#arbiter.explain?.(error)) ?? error;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#waiting.end();
    const patienceMs = Math.max(0, LONGEST_SILENCE_MS - this.#channel.silentMs);
    await within(this.port.timers, patienceMs, this.#cleanups.settled()).catch(() => {});
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
    this.#waiting.enter(acquisition);
    acquisition.start();
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
        this.#waiting.touchAll();
        for (const grant of this.#grants.values()) void this.#renewals.lookAfter(grant);
      },
    );
  }

  #onPush(push: Push): void {
    if (push.type === "revoked") {
      const grant = this.#grants.of(push.owner);
      if (grant?.token === BigInt(push.token)) this.#grants.lose(grant, "revoked", push.reason);
      // The word may overtake the grant itself: its owner will never hold again.
      else this.#waiting.of(push.owner)?.onRevoked();
      return;
    }
    if (push.type === "marked") {
      const { owner, token, meta } = push;
      // How long the mark stays is for those who ask; whoever waited only needs to know that it is.
      this.#waiting.of(owner)?.onMark(markView({ token, meta, remainingUs: 0 }));
      return;
    }
    const { owner } = push.grant;
    const acquisition = this.#waiting.of(owner);
    if (acquisition) acquisition.onPush(push.grant);
    else this.#refuse(push.key, owner);
  }

  /**
   * A grant for somebody who is gone goes back at once. An owner that holds here does so by this
   * very grant or by a later one, after the offer had lapsed: then the push is late, and nothing
   * goes back.
   */
  #refuse(key: string, owner: string): void {
    // rule: late-push-spares-the-holder
    if (!this.#grants.of(owner)) this.#cleanups.repeat(key, owner);
  }
}
