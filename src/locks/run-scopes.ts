import { AsyncLocalStorage } from "node:async_hooks";
import { present } from "../errors/assert.js";
import {
  DeadlockError,
  type LeaseLostError,
  releasedBefore,
  UnsupportedError,
} from "../errors/index.js";
import type { Lease } from "../lease/lease.js";
import type { LeaseClient } from "../lease/lease-client.js";
import type { Enclosing, Target } from "../lease/request-options.js";
import type { Options } from "../options/options.js";
import { fits, joined, VACANT } from "../rules/fits.js";
import { type Releasable, runUnder } from "./run-under.js";

type Part = Lease & Releasable;

/** A lock that a `run` holds. */
export interface Held {
  readonly target: Target;
  readonly lease: Part;
  /** Whether calls from inside the `run` may join the lease. */
  readonly isReentrant: boolean;
}

/** One `run`, for the calls that are made inside it. */
class Scope {
  readonly client: LeaseClient;
  readonly target: Target;
  readonly lease: Part;
  readonly isReentrant: boolean;
  readonly outer: Scope | undefined;
  isOpen = true;
  #uses = 0;

  constructor(client: LeaseClient, held: Held, outer: Scope | undefined) {
    this.client = client;
    this.target = held.target;
    this.lease = held.lease;
    this.isReentrant = held.isReentrant;
    this.outer = outer;
  }

  /** Whether this scope holds the lock that a call inside it asks for. */
  holds(client: LeaseClient, { space, name }: Target): boolean {
    const { isOpen, target, lease } = this;
    if (!isOpen || this.client !== client) return false;
    // A lease that was released before the end of its run protects nothing.
    return target.space === space && target.name === name && lease.state !== "released";
  }

  join(): JoinedLease {
    this.#uses += 1;
    return new JoinedLease(this.lease, () => this.#leave());
  }

  /** Releases the lease when its last user leaves. */
  #leave(): Promise<boolean> {
    this.#uses -= 1;
    if (this.#uses === 0) return this.lease.release();
    return Promise.resolve(this.lease.state === "held");
  }
}

/** A lease shared with an enclosing `run`: same token and signal. Only the last release counts. */
export class JoinedLease implements Lease {
  readonly #lease: Part;
  readonly #leave: () => Promise<boolean>;
  #released: Promise<boolean> | undefined;

  constructor(lease: Part, leave: () => Promise<boolean>) {
    this.#lease = lease;
    this.#leave = leave;
  }

  get name(): string {
    return this.#lease.name;
  }

  get token(): bigint {
    return this.#lease.token;
  }

  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  get state(): Lease["state"] {
    return this.#released && this.#lease.state === "held" ? "released" : this.#lease.state;
  }

  get handle(): string | null {
    return this.#lease.handle;
  }

  get loss(): LeaseLostError | undefined {
    return this.#lease.loss;
  }

  detach(): string {
    this.assertHeld();
    return this.#lease.detach();
  }

  remainingMs(): number {
    return this.#released ? 0 : this.#lease.remainingMs();
  }

  /**
   * Throws after this part was released, even if other parts still hold the lease.
   */
  assertHeld(): void {
    this.#lease.assertHeld();
    if (!this.#released) return;
    const { name, token } = this.#lease;
    throw releasedBefore({ lockName: name, token });
  }

  async renew(ttlMs?: number): Promise<void> {
    this.assertHeld();
    await this.#lease.renew(ttlMs);
  }

  release(): Promise<boolean> {
    this.#released ??= this.#leave();
    return this.#released;
  }

  toJSON(): Record<string, unknown> {
    const { state } = this;
    return { ...this.#lease.toJSON(), state, remainingMs: this.remainingMs() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** Created by the first `run`. */
let scopes: AsyncLocalStorage<Scope> | undefined;

/**
 * Runs `body` in new scopes, one for each held lock. They close when `body` ends, and later calls
 * cannot join them. `unite` combines the leases of the scopes into the one that `body` gets.
 */
export function runInScopes<L, T>(
  client: LeaseClient,
  held: readonly Held[],
  unite: (parts: readonly Part[]) => L & Releasable,
  body: (lease: L) => T | Promise<T>,
): Promise<T> {
  const opened: Scope[] = [];
  for (const one of held) opened.push(new Scope(client, one, opened.at(-1) ?? openAround()));
  const united = unite(opened.map((scope) => (scope.isReentrant ? scope.join() : scope.lease)));
  return runUnder(united, () => within(opened, () => body(united)));
}

/**
 * Runs `body` in a scope that no call can join. Calls inside it that would wait for this lease
 * throw. The caller releases the lease.
 */
export function runInScope<T>(
  client: LeaseClient,
  target: Target,
  lease: Lease,
  body: (lease: Lease) => T | Promise<T>,
): Promise<T> {
  const held = { target, lease: lease as Part, isReentrant: false };
  const scope = new Scope(client, held, openAround());
  return within([scope], () => body(lease));
}

function within<T>(opened: readonly Scope[], body: () => T | Promise<T>): Promise<T> {
  scopes ??= new AsyncLocalStorage();
  return scopes.run(present(opened.at(-1), "a run opens a scope"), async () => {
    try {
      return await body();
    } finally {
      for (const scope of opened) scope.isOpen = false;
    }
  });
}

/**
 * Returns the innermost open scope. Skipping closed ones keeps new scopes from retaining them.
 */
function openAround(): Scope | undefined {
  let scope = scopes?.getStore();
  while (scope && !scope.isOpen) scope = scope.outer;
  return scope;
}

/**
 * Returns the lease of the innermost `run`, `tryRun`, `once` or `lead` around this call, for code
 * that gets no lease as an argument. Undefined outside of these and after the body has ended.
 *
 * @example
 * import { currentLease } from "holdfast/nest";
 *
 * async function write(row: string) {
 *   currentLease()?.assertHeld();
 *   await save(row);
 * }
 */
export function currentLease(): Lease | undefined {
  return openAround()?.lease;
}

/** How many enclosing runs a waiter names in its meta. */
const MAX_ENCLOSING = 4;

/** The leases of the open runs around this call, for `findDeadlocks`; undefined if none. */
export function enclosingRuns(client: LeaseClient): readonly Enclosing[] | undefined {
  let found: Enclosing[] | undefined;
  for (let scope = openAround(); scope; scope = scope.outer) {
    const { space, name } = scope.target;
    if (!scope.isOpen || scope.client !== client || space !== "lock") continue;
    found ??= [];
    if (found.push({ name, token: `${scope.lease.token}` }) === MAX_ENCLOSING) break;
  }
  return found;
}

/**
 * Returns the lease of the open `run` around this call if the call may join it, otherwise null.
 * Throws if that lease was lost, or if the call would wait for a run that it is made in.
 */
export function joinScope(
  client: LeaseClient,
  target: Target,
  { reentrant, signal }: Options,
  mayWait: boolean,
): JoinedLease | null {
  let nearest: Scope | undefined;
  let held = VACANT;
  for (let scope = scopes?.getStore(); scope; scope = scope.outer) {
    if (!scope.holds(client, target)) continue;
    if (scope.isReentrant && reentrant) {
      signal?.throwIfAborted();
      return joinLease(scope, target);
    }
    if (scope.lease.state !== "held") continue;
    nearest ??= scope;
    held = joined(held, scope.target);
  }
  if (!mayWait || !nearest || fits(held, target)) return null;
  const { name: lockName, space } = target;
  const context = { lockName, store: client.store.name };
  throw new DeadlockError(space, remedyFor(nearest, target), context);
}

/** The advice for a call that would wait for the run around it; may be empty. */
function remedyFor({ isReentrant, target: outer }: Scope, target: Target): string {
  if (target.space !== "lock") return "";
  const where = isReentrant ? "this call" : "both calls";
  return whyApart(outer, target) ?? `Set reentrant: true for ${where}`;
}

/** The advice for a call that asks for more than the run around it holds; null if it does not. */
function whyApart(outer: Target, inner: Target): string | null {
  if (outer.mode === "exclusive") return null;
  if (inner.mode === "exclusive") return "Take the write side first";
  const isMore = inner.weight > outer.weight || inner.limit < outer.limit;
  return isMore ? "Take that much first" : null;
}

function joinLease(scope: Scope, target: Target): JoinedLease {
  const remedy = whyApart(scope.target, target);
  if (remedy !== null) {
    const { name: lockName } = target;
    const message = `This call asks for more of lock "${lockName}" than the run around it holds.`;
    const store = scope.client.store.name;
    throw new UnsupportedError(`${message} ${remedy}.`, { lockName, store });
  }
  scope.lease.assertHeld();
  return scope.join();
}
