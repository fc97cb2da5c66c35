/**
 * The family's shared part: turns an arbiter (atomic commands, pushes) into a store.
 *
 * Why it is safe: each `LedgerGrant` is backed by a holder in the ledger. Its deadline is measured
 * from when an answered request was sent, or from a push proven fresh, and is before the ledger's
 * expiry. So this client stops relying on its grant before the ledger can grant the lock to another
 * client. Only a release by this client, a revoke or the expiry ends a holder, and a renewal never
 * creates one.
 *
 * Why an acquire after a release does not find the lock held by it: commands for one name travel on
 * one connection in the order in which they are issued. A command that fails or that the arbiter
 * resends may be overtaken, so an acquire that was sent after a still unanswered release and finds
 * the lock held asks again.
 */

import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type {
  AcquireResult,
  Claim,
  Grant,
  LockView,
  Meta,
  Renewal,
  Store,
  Traits,
  Wait,
} from "../../contract/store.js";
import { ClosedError, type StoreError } from "../../errors/index.js";
import { guarded } from "../../events/foreign-data.js";
import type { Push, Release } from "../../rules/ledger-command.js";
import { keyOf, type Space } from "../../rules/name.js";
import type { Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import { Acquisition } from "./acquisition.js";
import type { Arbiter } from "./arbiter.js";
import { ArbiterClient, type ArbiterOptions } from "./arbiter-client.js";
import { ownGrant } from "./ledger-grant.js";
import { Renewals } from "./renewals.js";
import { lockView, markView } from "./views.js";
import { Withdrawal } from "./withdrawal.js";

/** `close` waits for the cleanups until the store has been silent for this long. */
const MAX_SILENCE_MS = 1_000;

/** The mark that a release leaves. */
interface OnceMark {
  readonly ttlMs: number;
  readonly meta: Meta;
}

export class LedgerStore implements Store {
  readonly name: string;
  readonly namespace: string;
  readonly traits: Traits;
  readonly runtime: Runtime;
  readonly #arbiter: Arbiter;
  readonly #client: ArbiterClient;
  readonly #renewals: Renewals;
  #isListening = false;
  #isClosed = false;

  constructor(arbiter: Arbiter, options: ArbiterOptions = {}) {
    this.name = arbiter.name;
    this.namespace = arbiter.namespace ?? "";
    this.traits = { ordersReleases: true, ...arbiter.traits };
    this.runtime = arbiter.runtime;
    this.#arbiter = arbiter;
    this.#client = new ArbiterClient(arbiter, options);
    this.#renewals = new Renewals(this.#client);
  }

  acquire(claim: Claim, wait: Wait | null): Promise<AcquireResult> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new ClosedError({ store: this.name });
      this.#listen();
      new Acquisition(claim, wait, this.#client).start(resolve, reject);
    });
  }

  renew(
    grants: readonly { readonly grant: Grant; readonly ttlMs: number }[],
  ): Promise<readonly Renewal[]> {
    return Promise.all(grants.map(({ grant, ttlMs }) => this.#renewals.renew(grant, ttlMs)));
  }

  resume(claim: Claim, token: bigint): Promise<Grant | null> {
    this.#listen();
    return this.#renewals.resume(claim, token);
  }

  detach(grant: Grant): void {
    this.#client.grants.forget(ownGrant(grant));
  }

  release(grant: Grant, withinMs: number, keep?: OnceMark): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const released = ownGrant(grant);
      released.isReleasing = true;
      const token = keep ? released.token : null;
      const withdrawal = new Withdrawal(released, markOf(keep), withinMs, this.#client, token);
      withdrawal.start(resolve, reject, this.#client.limits);
    });
  }

  async inspect(space: Space, name: string): Promise<LockView> {
    const key = keyOf(space, name);
    const { reply } = await this.#client.batcher.send({ type: "inspect", key });
    return lockView(key, reply);
  }

  async *list(space: Space, prefix: string): AsyncIterable<LockView> {
    for await (const { key, view } of this.#arbiter.list(keyOf(space, prefix))) {
      yield lockView(key, view);
    }
  }

  async revoke(space: Space, name: string, token: bigint, reason: string): Promise<boolean> {
    // No lease has such a token, and rounding it to a number could give the token of another lease.
    if (token < 0n || token > Number.MAX_SAFE_INTEGER) return false;
    const command = {
      type: "revoke",
      key: keyOf(space, name),
      token: Number(token),
      reason,
    } as const;
    const { reply } = await this.#client.batcher.send(command);
    if (reply.done) this.#onRevoked(command.key, token, reason);
    return reply.done;
  }

  async explain(error: StoreError): Promise<StoreError> {
    return (await this.#arbiter.explain?.(error)) ?? error;
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const examination = this.#arbiter.examine?.(request);
    return (await examination) ?? { store: this.name, findings: [], failureCases: [] };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { acquisitions, handoffChecks, batcher, cleanups, limits } = this.#client;
    handoffChecks.end();
    acquisitions.giveUpAll();
    const patienceMs = Math.max(0, MAX_SILENCE_MS - batcher.silentMs);
    await within(this.runtime.timers, patienceMs, cleanups.settled()).catch(() => {});
    limits.stop();
    await this.#arbiter.close();
  }

  /** Ends the lease here if it belongs to this client, because the push may not arrive. */
  #onRevoked(key: string, token: bigint, reason: string): void {
    const { acquisitions, grants } = this.#client;
    for (const grant of [...grants.values()]) {
      // rule: own-revoke-ends-the-grant
      if (grant.key === key && grant.hasToken(token)) grants.lose(grant, "revoked", reason);
    }
    acquisitions.onRevoked(key, token);
  }

  #listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    const { id, heartbeats, grants } = this.#client;
    const onPush = guarded(this.name, "a push", (push: Push) => this.#onPush(push));
    this.#arbiter.listen(id, onPush, () => {
      heartbeats.sendAll();
      for (const grant of grants.values()) void this.#renewals.lookAfter(grant);
    });
  }

  #onPush(push: Push): void {
    const { acquisitions, grants } = this.#client;
    switch (push.type) {
      case "revoked": {
        const grant = grants.of(push.owner);
        // rule: pushed-revoke-ends-the-grant
        if (grant?.token === BigInt(push.token)) grants.lose(grant, "revoked", push.reason);
        // The push has overtaken the grant itself. This owner never holds again.
        else acquisitions.of(push.owner)?.onRevoked();
        return;
      }
      case "marked": {
        const { owner, token, meta } = push;
        // Waiters only need to know that there is a mark, so its remaining time does not matter.
        acquisitions.of(owner)?.onMark(markView({ token, meta, remainingUs: 0 }));
        return;
      }
      default:
        acquisitions.onPush(push.key, push.grant);
    }
  }
}

function markOf(keep: OnceMark | undefined): Release["keep"] {
  return keep ? { ttlUs: Math.ceil(keep.ttlMs * 1000), meta: JSON.stringify(keep.meta) } : null;
}
