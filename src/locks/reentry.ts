import { AsyncLocalStorage } from "node:async_hooks";
import { LeaseLostError, UnsupportedError } from "../errors.js";
import type { Client, Target } from "../lease/client.js";
import type { Lease } from "../lease/lease.js";
import type { Options } from "../options.js";
import { type Releasable, runUnder } from "./run-under.js";

type Part = Lease & Releasable;

/** One `run` of a reentrant lock: whoever calls from inside it may join its lease. */
class Scope {
  readonly client: Client;
  readonly target: Target;
  readonly lease: Part;
  readonly outer: Scope | undefined;
  isOpen = true;
  #uses = 0;

  constructor(client: Client, target: Target, lease: Part, outer: Scope | undefined) {
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
    if (this.#uses === 0) return this.lease.end();
    return Promise.resolve(this.lease.state === "held");
  }
}

/** The same lease once more: same token, same signal; its release only counts down. */
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

  end(): Promise<boolean> {
    return this.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end();
  }
}

/** Made with the first reentrant `run`: nobody else pays for it. */
let scopes: AsyncLocalStorage<Scope> | undefined;

/** What a `run` holds: one lock, or each of several. */
interface Held {
  readonly target: Target;
  readonly lease: Part;
}

/**
 * Runs `body` in scopes of its own, which close when `body` ends: later calls acquire anew. `unite`
 * makes the lease that `body` gets from those that the scopes share.
 */
export function openScopes<L, T>(
  client: Client,
  held: readonly Held[],
  unite: (joined: readonly JoinedLease[]) => L & Releasable,
  body: (lease: L) => T | Promise<T>,
): Promise<T> {
  scopes ??= new AsyncLocalStorage();
  const opened: Scope[] = [];
  for (const { target, lease } of held) {
    opened.push(new Scope(client, target, lease, opened.at(-1) ?? openAround()));
  }
  const united = unite(opened.map((scope) => scope.join()));
  return scopes.run(opened.at(-1) as Scope, () =>
    runUnder(united, async () => {
      try {
        return await body(united);
      } finally {
        for (const scope of opened) scope.isOpen = false;
      }
    }),
  );
}

/**
 * The innermost scope that is still open: what is closed would else be kept alive by what follows.
 */
function openAround(): Scope | undefined {
  let scope = scopes?.getStore();
  while (scope && !scope.isOpen) scope = scope.outer;
  return scope;
}

/** The lease of the open `run` around this call, if the call may join it. Throws if it was lost. */
export function joinScope(client: Client, target: Target, options: Options): JoinedLease | null {
  if (!options.reentrant || !scopes) return null;
  options.signal?.throwIfAborted();
  for (let scope = scopes.getStore(); scope; scope = scope.outer) {
    const { space, name, mode } = scope.target;
    // What was given back before the end of its run protects nobody: whoever asks gets a new one.
    if (!scope.isOpen || scope.client !== client || scope.lease.state === "released") continue;
    if (space !== target.space || name !== target.name) continue;
    if (mode === "shared" && target.mode === "exclusive") {
      throw new UnsupportedError(
        `Lock "${name}" is held shared by the run around this call; acquiring it exclusively ` +
          "would wait for itself. Take the write side first.",
        { lockName: name, store: client.store.name },
      );
    }
    const isMore = target.weight > scope.target.weight || target.limit < scope.target.limit;
    if (mode === "shared" && isMore) {
      throw new UnsupportedError(
        `Lock "${name}" is held by the run around this call with weight ${scope.target.weight}; ` +
          "joining it with more weight or a lower limit would exceed what was granted.",
        { lockName: name, store: client.store.name },
      );
    }
    scope.lease.assertHeld();
    return scope.join();
  }
  return null;
}
