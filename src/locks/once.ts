/// <reference lib="esnext.disposable" preserve="true" />

import type { Busy, Meta } from "../contract/store.js";
import { aboutLock, InvalidOptionError, type LeaseLostError, StoreError } from "../errors/index.js";
import type { HeldLease, Lease, OnceMark } from "../lease/lease.js";
import type { LeaseClient } from "../lease/lease-client.js";
import type { Target } from "../lease/request-options.js";
import { knownOptions } from "../options/known-options.js";
import {
  type AcquireOptions,
  checkDuration,
  OPTION_NAMES,
  type Options,
  resolveOptions,
} from "../options/options.js";
import { NO_LIMIT } from "../rules/fits.js";
import { withJson } from "../rules/json.js";
import { checkBody } from "./lock.js";
import { joinScope, runInScope } from "./run-scopes.js";
import { type Releasable, runUnder } from "./run-under.js";
import { tracedRun } from "./traced-run.js";

/** The options of `once`: those of an acquisition, and how long a success is remembered. */
export interface OnceOptions extends AcquireOptions {
  /** How long the success is remembered. */
  readonly keepMs: number;
}

/** `running`: another call runs the work now. `done`: another call has finished it. */
export type OnceResult<T> =
  | { readonly ran: true; readonly value: T; readonly token: bigint }
  | {
      readonly ran: false;
      readonly state: "running" | "done";
      /** The `meta` of that call; null if unknown. */
      readonly by: Meta | null;
      readonly token: bigint | null;
    };

/** A `once` that this call began: no other call runs the work while its lease is held. */
export interface OnceRun extends AsyncDisposable {
  /** Distinguishes a run of this call from the run of another call. */
  readonly began: true;
  /** Held while the work runs; `finish` and `abandon` release it. */
  readonly lease: Lease;
  /** The fencing token of this run. */
  readonly token: bigint;
  /**
   * Call this when the work is done: it leaves the mark. Throws `LeaseLostError` if the lease was
   * lost before, and `StoreError` if the store did not confirm the mark.
   *
   * @example
   * const run = await locks.beginOnce("import:7", { keepMs: 86_400_000 });
   * if (!run.began) return;
   * await sendReport(run.token);
   * await run.finish();
   */
  finish(): Promise<void>;
  /** Lets another call run the work. `await using` calls this unless `finish` was called. */
  abandon(): Promise<void>;
}

/** The result of `beginOnce`: a run of this call, or what is known about another call's run. */
export type OnceBeginning =
  | OnceRun
  | (AsyncDisposable & { readonly began: false } & Omit<
        Extract<OnceResult<never>, { ran: false }>,
        "ran"
      >);

/**
 * Runs `work` at least once, and not again for `keepMs` after a success. If the work fails or the
 * lease is lost, another call may run it again, so the work must be safe to repeat. A second call
 * returns immediately; with `waitMs` it waits for the first and takes over if that fails. Without
 * `waitMs`, the call throws `StoreError` if the store does not answer within a second.
 */
export function once<T>(
  client: LeaseClient,
  name: string,
  work: (lease: Lease) => T | Promise<T>,
  onceOptions: OnceOptions,
  defaults: Options,
): Promise<OnceResult<T>> {
  const target = targetOf(name);
  return tracedRun(
    client.store,
    () => target,
    work,
    async (traced) => {
      aboutLock(name, client.store.name, () => checkBody(traced, "once(name, "));
      const begun = await begin(client, target, onceOptions, defaults);
      if (!begun.began) {
        const { state, by, token } = begun;
        return withJson({ ran: false, state, by, token });
      }
      const { lease } = begun;
      const value = await runUnder(begun, async () => {
        const result = await runInScope(client, target, lease, traced);
        begun.isDone = true;
        return result;
      });
      return withJson({ ran: true, value, token: lease.token });
    },
  );
}

/** Like `once`, but in two calls, for work that does not fit into a function. */
export function beginOnce(
  client: LeaseClient,
  name: string,
  options: OnceOptions,
  defaults: Options,
): Promise<OnceBeginning> {
  return begin(client, targetOf(name), options, defaults);
}

async function begin(
  client: LeaseClient,
  target: Target,
  onceOptions: OnceOptions,
  defaults: Options,
): Promise<BegunOnce | Exclude<OnceBeginning, OnceRun>> {
  const { keepMs, options, isTry } = aboutLock(target.name, client.store.name, () => {
    const { keepMs, ...given } = knownOptions(onceOptions, ["keepMs", ...OPTION_NAMES]);
    checkDuration("keepMs", keepMs, 1);
    const patience = { ...given, waitMs: given.waitMs ?? 0 };
    const options = resolveOptions(patience, client.store.traits, defaults);
    // Only this process can leave the mark, so another process must not take over the lease.
    if (options.transferable) throw new InvalidOptionError("transferable", true, "must be false");
    return { keepMs, options, isTry: given.waitMs === undefined };
  });
  const mayWait = options.waitMs > 0;
  // A once cannot be joined. This throws if the call would wait for the `once` it is made in.
  joinScope(client, target, options, mayWait);
  const outcome = await client.request(target, options, mayWait, isTry);
  if (outcome.type === "busy") return outdone(outcome);
  return new BegunOnce(outcome.lease, { ttlMs: keepMs, meta: options.meta });
}

function targetOf(name: string): Target {
  return { kind: "once", space: "once", name, mode: "exclusive", weight: 1, limit: NO_LIMIT };
}

class BegunOnce implements OnceRun, Releasable {
  readonly began = true;
  readonly lease: HeldLease;
  readonly #mark: OnceMark;
  isDone = false;

  constructor(lease: HeldLease, mark: OnceMark) {
    this.lease = lease;
    this.#mark = mark;
  }

  get token(): bigint {
    return this.lease.token;
  }

  get loss(): LeaseLostError | undefined {
    return this.lease.loss;
  }

  async finish(): Promise<void> {
    if (!this.isDone) this.lease.assertHeld();
    this.isDone = true;
    await this.release();
    if (this.loss) throw this.loss;
    const { name: lockName, releaseError: cause } = this.lease;
    if (cause === undefined) return;
    const message = "The store did not confirm the mark; the work may be run again.";
    throw new StoreError(message, { outcome: "unknown", retryable: false, lockName, cause });
  }

  async abandon(): Promise<void> {
    await this.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Replaces the lease by the mark in one step, so that no other call gets the lock in between. */
  release(): Promise<boolean> {
    return this.lease.release(this.isDone ? this.#mark : undefined);
  }
}

function outdone({ holder, mark }: Busy): Exclude<OnceBeginning, OnceRun> {
  const seen = mark ?? holder;
  return withJson({
    began: false,
    state: mark ? "done" : "running",
    by: seen?.meta ?? null,
    token: seen?.token ?? null,
    // Lets callers use `await using` with either result.
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}
