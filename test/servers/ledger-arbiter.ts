import { randomUUID } from "node:crypto";
import type { Traits } from "../../src/contract/store.js";
import { StoreError } from "../../src/errors/index.js";
import type { Arbiter, Execution } from "../../src/families/ledger/arbiter.js";
import type { Command, Push, View } from "../../src/rules/ledger-command.js";
import { networkRuntime, type Runtime } from "../../src/time/runtime.js";
import { LedgerLink } from "./ledger-link.js";

export const LEDGER_TRAITS: Traits = {
  scope: "machine",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 50,
};

const RECONNECT_MS = 20;

/**
 * A client of the ledger server: one connection for commands and pushes, which it opens again after
 * a failure.
 */
export class LedgerArbiter implements Arbiter {
  readonly name = "ledger";
  readonly traits: Traits = LEDGER_TRAITS;
  readonly isLocal = false;
  readonly believesPushes = true;
  readonly runtime: Runtime = networkRuntime();
  /** The label by which a fault selects this client. */
  readonly label: string = randomUUID();
  readonly #serverPort: number;
  readonly #namespace: string;
  #client: string | null = null;
  #onPush: (push: Push) => void = () => {};
  #onReset: () => void = () => {};
  #link: LedgerLink | null = null;
  #linking: Promise<LedgerLink> | null = null;
  #isClosed = false;

  constructor(serverPort: number, namespace: string) {
    this.#serverPort = serverPort;
    this.#namespace = namespace;
  }

  shardOf(): string {
    return "";
  }

  async execute(_shard: string, commands: readonly Command[]): Promise<Execution> {
    const link = this.#link ?? (await this.#connect());
    return link.ask({ type: "execute", namespace: this.#namespace, commands });
  }

  async *list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    const link = this.#link ?? (await this.#connect());
    yield* await link.ask({ type: "list", namespace: this.#namespace, prefix });
  }

  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void {
    this.#client = client;
    this.#onPush = onPush;
    this.#onReset = onReset;
    if (this.#link) this.#greet(this.#link);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#link?.close();
  }

  #connect(): Promise<LedgerLink> {
    this.#linking ??= this.#open().finally(() => {
      this.#linking = null;
    });
    return this.#linking;
  }

  async #open(): Promise<LedgerLink> {
    if (this.#isClosed) throw new StoreError("Closed.", { outcome: "not_applied" });
    const link = await LedgerLink.connect(this.#serverPort);
    if (this.#isClosed) link.close();
    link.onPush = (push) => this.#onPush(push);
    void link.closed.then(() => {
      this.#link = null;
      this.#reconnect(0);
    });
    this.#link = link;
    this.#greet(link);
    return link;
  }

  /** Later commands on the same connection are served after it, so nothing waits for it. */
  #greet(link: LedgerLink): void {
    link.ask({ type: "hello", label: this.label, client: this.#client }).catch(() => {});
  }

  /** A waiter needs pushes, so the connection is opened again without a command. */
  #reconnect(delayMs: number): void {
    if (this.#isClosed || this.#client === null) return;
    this.runtime.timers.after(delayMs, () => {
      if (this.#link) return this.#onReset();
      this.#connect().then(
        () => this.#onReset(),
        () => this.#reconnect(RECONNECT_MS),
      );
    });
  }
}
