import { AsyncLocalStorage } from "node:async_hooks";
import { LeaseLostError, UnsupportedError } from "../errors.js";
import type { Client, Target } from "../lease/client.js";
import type { HeldLease, Lease } from "../lease/lease.js";
import type { Options } from "../options.js";
import { runUnder } from "./run-under.js";

/** One `run` of a reentrant lock: whoever calls from inside it may join its lease. */
class Scope {
  readonly client: Client;
  readonly target: Target;
  readonly lease: HeldLease;
  readonly outer: Scope | undefined;
  isOpen = true;
  #uses = 0;

  constructor(client: Client, target: Target, lease: HeldLease, outer: Scope | undefined) {
    this.client = client;
    this.target = target;
    this.lease = lease;
    this.outer = outer;
  }

  join(): JoinedLease {
    this.#uses += 1;
    return new JoinedLease(this.lease, () => this.#leave());
  }

  /** Only the last to leave releases. */
  #leave(): Promise<boolean> {
    this.#uses -= 1;
    if (this.#uses === 0) return this.lease.release();
    return Promise.resolve(this.lease.state === "held");
  }
}

/** The same lease once more: same token, same signal; its release only counts down. */
class JoinedLease implements Lease {
  readonly #lease: HeldLease;
  readonly #leave: () => Promise<boolean>;
  #released: Promise<boolean> | undefined;

  constructor(lease: HeldLease, leave: () => Promise<boolean>) {
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

  /** Whoever has left may not go by what the others still hold. */
  assertHeld(): void {
    this.#lease.assertHeld();
    if (!this.#released) return;
    const { name, token } = this.#lease;
    throw new LeaseLostError("missing", { lockName: name, token, why: "it was released before" });
  }

  async renew(ttlMs?: number): Promise<void> {
    this.assertHeld();
    await this.#lease.renew(ttlMs);
  }

  release(): Promise<boolean> {
    this.#released ??= this.#leave();
    return this.#released;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** Made with the first reentrant `run`: nobody else pays for it. */
let scopes: AsyncLocalStorage<Scope> | undefined;

/** Runs `body` in a scope of its own, which closes when `body` ends: later calls acquire anew. */
export function openScope<T>(
  client: Client,
  target: Target,
  lease: HeldLease,
  body: (lease: Lease) => T | Promise<T>,
): Promise<T> {
  scopes ??= new AsyncLocalStorage();
  const scope = new Scope(client, target, lease, scopes.getStore());
  return scopes.run(scope, () =>
    runUnder(scope.join(), async (joined) => {
      try {
        return await body(joined);
      } finally {
        scope.isOpen = false;
      }
    }),
  );
}

/** The lease of the open `run` around this call, if the call may join it. Throws if it was lost. */
export function joinScope(client: Client, target: Target, options: Options): JoinedLease | null {
  if (!options.reentrant || !scopes) return null;
  for (let scope = scopes.getStore(); scope; scope = scope.outer) {
    const { space, name, mode } = scope.target;
    // What was given back before the end of its run protects nobody: whoever asks gets a new one.
    if (!scope.isOpen || scope.client !== client || scope.lease.state === "released") continue;
    if (space !== target.space || name !== target.name) continue;
    if (mode === "shared" && target.mode === "exclusive") {
      throw new UnsupportedError(
        `Lock "${name}" is held shared by the run around this call; acquiring it exclusively would ` +
          "wait for itself. Take the write side first.",
        { lockName: name, store: client.store.name },
      );
    }
    scope.lease.assertHeld();
    return scope.join();
  }
  return null;
}
