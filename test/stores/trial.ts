import type { Holdfast } from "../../src/api/holdfast.js";
import { type FaultProxy, type ProxyOptions, startProxy } from "../faults/proxy.js";
import { waitUntil } from "../servers/wait-until.js";

/** The clients and proxies of one test, closed at its end. */
export class StoreTrial implements AsyncDisposable {
  readonly #locks: Holdfast[] = [];
  readonly #closers: (() => unknown)[] = [];

  /** Closes the locks with the trial. */
  add(locks: Holdfast): Holdfast {
    this.#locks.push(locks);
    return locks;
  }

  closeLater(close: () => unknown): void {
    this.#closers.push(close);
  }

  async proxy(options: ProxyOptions): Promise<FaultProxy> {
    const proxy = await startProxy(options);
    this.closeLater(() => proxy.close());
    return proxy;
  }

  /** Closes all locks, then the rest in reverse order. */
  async close(): Promise<void> {
    await Promise.all(this.#locks.splice(0).map((locks) => locks.close()));
    for (const close of this.#closers.splice(0).reverse()) await close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Resolves when that many requests wait for the lock. */
export async function untilWaiting(locks: Holdfast, name: string, count = 1): Promise<void> {
  await waitUntil(async () => (await locks.inspect(name)).waiters.length === count, {
    what: `${count} requests wait for ${name}`,
  });
}
