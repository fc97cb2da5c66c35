import type { Examination, ExamineRequest } from "../../contract/examination.js";
import type { Traits } from "../../contract/store.js";
import { StoreError } from "../../errors/index.js";
import { guarded } from "../../events/foreign-data.js";
import type { Arbiter, Execution } from "../../families/ledger/arbiter.js";
import type { Command, Push, Reply, View } from "../../rules/ledger-command.js";
import { networkRuntime, type Runtime } from "../../time/runtime.js";
import { within } from "../../time/timers.js";
import type { Driver } from "../redis-client/client.js";
import { whyUnreachable } from "../redis-client/errors.js";
import { Subscription } from "../redis-client/subscription.js";
import { decodePush, verbOf } from "./codec.js";
import { Layout } from "./layout.js";
import { Listing } from "./listing.js";
import { CLUSTER, PROVE, RedisScript, TELL_RUN } from "./redis-script.js";
import { Replication } from "./replication.js";

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 50,
};

/** Commands that may be answered by a grant or a renewal, which a holder believes. */
const BELIEVED: ReadonlySet<Command["type"]> = new Set(["acquire", "confirm", "renew"]);

/** How long an examination waits for the first answer. */
const REACH_MS = 3_000;

export interface RedisStoreSettings {
  readonly namespace: string;
  readonly replicas: number;
  readonly replicaTimeoutMs: number;
  /** Closes the client, if the store opened it. */
  readonly onClose?: () => Promise<void>;
}

export class RedisStore implements Arbiter {
  readonly name = "redis";
  readonly namespace: string;
  readonly traits: Traits;
  readonly isLocal = false;
  readonly runtime: Runtime = networkRuntime();
  readonly believesPushes: boolean;
  readonly #driver: Driver;
  readonly #options: RedisStoreSettings;
  readonly #layout: Layout;
  readonly #script: RedisScript;
  readonly #listing: Listing;
  readonly #flags: number;
  readonly #replications = new Map<string, Replication>();
  readonly #used = new Set<string>();
  #subscription: Subscription | null = null;

  constructor(driver: Driver, options: RedisStoreSettings) {
    const { isCluster, hasOneConnection, keyPrefix, database } = driver;
    this.namespace = options.namespace;
    this.#driver = driver;
    this.#options = options;
    this.#layout = new Layout(options.namespace, isCluster, keyPrefix, database);
    this.#script = new RedisScript(driver, this.#layout);
    this.#listing = new Listing(this, driver, this.#layout, this.#script);
    this.believesPushes = options.replicas === 0;
    // With replicas a release may have to stay here until the WAIT before it is answered.
    this.traits = { ...TRAITS, ordersReleases: options.replicas === 0 };
    const tellsRun = !hasOneConnection && options.replicas === 0;
    this.#flags = (isCluster ? CLUSTER : 0) + (tellsRun ? TELL_RUN : 0);
  }

  shardOf(key: string): string {
    return this.#layout.shardOf(key);
  }

  execute(shard: string, commands: readonly Command[]): Promise<Execution> {
    this.#used.add(shard);
    if (isOfOneVerb(commands)) return this.#call(shard, commands);
    return this.#script.batch(commands, (some) => this.#call(shard, some));
  }

  #call(shard: string, commands: readonly Command[]): Promise<Execution> {
    if (this.#options.replicas > 0) return this.#replicated(shard, commands);
    const before = this.#driver.changes();
    const register = this.#layout.registerOf(shard);
    return this.#script.run(
      register,
      commands,
      this.#flags,
      (command, args) => this.#driver.send(register, command, args),
      (raw) => this.#script.read(commands, raw, before, this.#flags),
    );
  }

  list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    return this.#listing.views(prefix);
  }

  /**
   * Commands do not wait for the subscription. A push that is sent before the subscription is up
   * has no listener, which the script notices, or is missed. After `onReset` the family asks for
   * everything that it may have missed.
   */
  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void {
    this.#subscription = new Subscription(this.#driver, this.runtime, {
      channel: this.#layout.channelPrefix + client,
      onMessage: guarded(this.name, "a message to this client", (message: string) => {
        onPush(decodePush(client, message));
      }),
      onUp: () => {
        onReset();
        void this.#afterAnswers(onReset);
      },
    });
    this.#subscription.start();
  }

  /**
   * A command that was under way at the reset may have put a waiter into a queue before it. The
   * family learns of that waiter only by the answer, so it must ask once more after the answer.
   */
  async #afterAnswers(onReset: () => void): Promise<void> {
    // A server answers in order: the answers to earlier commands come before the answer to this.
    await Promise.allSettled([...this.#used].map((shard) => this.execute(shard, [])));
    this.runtime.timers.after(0, onReset);
  }

  async explain(error: StoreError): Promise<StoreError> {
    const cause = await whyUnreachable(this.#driver);
    if (!cause) return error;
    const { outcome, retryable, lockName, store } = error;
    const servers = this.#driver.servers().map(({ host, port }) => `${host}:${port}`);
    const text = `${error.message} No Redis answers at ${servers.join(", ")} (${cause.message}).`;
    return new StoreError(text, { outcome, retryable, lockName, store, cause });
  }

  async examine(request: ExamineRequest): Promise<Examination> {
    const [shard = ""] = this.#layout.shards;
    await this.#reach(this.#layout.registerOf(shard));
    // Only a doctor needs this.
    const { examineRedis } = await import("./doctor.js");
    const [driver, layout, runtime] = [this.#driver, this.#layout, this.runtime];
    const register = layout.registerOf(shard);
    // By the client of the user, also with replicas: their connection has a check of its own.
    const greet = (): Promise<unknown> =>
      this.#script.run(
        register,
        [],
        this.#flags,
        (command, args) => driver.send(register, command, args),
        (raw) => raw,
      );
    return examineRedis({ driver, layout, runtime, greet }, this.#options, request);
  }

  async close(): Promise<void> {
    this.#subscription?.close();
    for (const replication of this.#replications.values()) replication.close();
    await this.#options.onClose?.();
  }

  /** A server that refuses the command is reached all the same. PING fails where saving does. */
  async #reach(register: string): Promise<void> {
    try {
      await within(this.runtime.timers, REACH_MS, this.#driver.send(register, "time", []));
    } catch (cause) {
      const error = this.#script.error(cause);
      if (error.retryable) throw error;
    }
  }

  /** A grant or a renewal counts only when enough replicas have it. */
  async #replicated(shard: string, commands: readonly Command[]): Promise<Execution> {
    const isBelieved = commands.some(({ type }) => BELIEVED.has(type));
    const flags = this.#flags + (isBelieved ? PROVE : 0);
    const replication = this.#replication(shard);
    const register = this.#driver.keyPrefix + this.#layout.registerOf(shard);
    const { raw, link, doubt } = await this.#script.run(
      register,
      commands,
      flags,
      (command, args) => replication.run([command, ...args], isBelieved),
      (replicated) => replicated,
    );
    const read = this.#script.read(commands, raw, this.#driver.changes());
    const why = read.replies.some(isPromise) ? await doubt : null;
    const replies = read.replies.map((reply) => (why && isPromise(reply) ? why : reply));
    return { ...read, node: link, replies };
  }

  #replication(shard: string): Replication {
    let replication = this.#replications.get(shard);
    if (!replication) {
      const register = this.#layout.registerOf(shard);
      replication = new Replication(this.#driver, this.runtime.timers, register, this.#options);
      this.#replications.set(shard, replication);
    }
    return replication;
  }
}

function isOfOneVerb(commands: readonly Command[]): boolean {
  const [first] = commands;
  return commands.length < 2 || !first || commands.every((one) => verbOf(one) === verbOf(first));
}

/** A reply that a holder believes. */
function isPromise(reply: Reply | StoreError): boolean {
  return !(reply instanceof Error) && (reply.type === "granted" || reply.type === "renewed");
}
