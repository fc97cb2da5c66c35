import { createHash } from "node:crypto";
import { StoreError } from "../../errors.js";
import { foreignData, guarded, isForeign, reportForeign, whole } from "../../foreign-data.js";
import type { Command, Push, Reply, View } from "../../rules/ledger-command.js";
import { compareNames } from "../../rules/name.js";
import type { Traits } from "../../store.js";
import { networkPort, type Port } from "../../time/port.js";
import { within } from "../../time/timers.js";
import type { Arbiter, Execution } from "../arbiter/arbiter.js";
import { checkVersion } from "../redis-client/check-version.js";
import type { Driver } from "../redis-client/driver.js";
import { isNoScript, plainError, storeError } from "../redis-client/failure.js";
import { Subscription } from "../redis-client/subscription.js";
import { whyUnreachable } from "../redis-client/unreachable.js";
import { decode, decodePush, encode, expiryUs } from "./codec.js";
import { Layout, patternOf } from "./layout.js";
import { type Listed, listCalls } from "./list-calls.js";
import { type Replicated, Replication } from "./replication.js";
import { SCRIPT } from "./script.generated.js";

const SHA = createHash("sha1").update(SCRIPT).digest("hex");

const TRAITS: Traits = {
  scope: "network",
  modes: ["exclusive", "shared"],
  fifo: true,
  tokenSpan: true,
  transferable: true,
  marks: true,
  minTtlMs: 50,
};

/** Flags of a batch: a push may be heard elsewhere; tell which run of the server acted; write. */
const UNCOUNTED = 1;
const TELL_RUN = 2;
const PROVE = 4;

/** Commands whose answer may be one that somebody believes. */
const BELIEVED: ReadonlySet<Command["type"]> = new Set(["acquire", "confirm", "renew"]);

/** So many names at a time are read for a list. */
const LIST_CHUNK = 100;
/** So many entries of the register are looked at in one call. */
const SCAN_COUNT = 500;
/** How long each of its calls may take. */
const LIST_CALL_MS = 5_000;

export interface RedisArbiterOptions {
  readonly namespace: string;
  readonly replicas: number;
  readonly replicaTimeoutMs: number;
  /** Closes the client, where it is ours. */
  readonly onClose?: () => Promise<void>;
}

/** Sends a command with a register as its key, and gives the answer. */
type Send<T> = (command: string, args: readonly string[]) => Promise<T>;

export class RedisArbiter implements Arbiter {
  readonly name = "redis";
  readonly namespace: string;
  readonly traits: Traits = TRAITS;
  readonly isLocal = false;
  readonly port: Port = networkPort();
  readonly believesPushes: boolean;
  readonly #driver: Driver;
  readonly #options: RedisArbiterOptions;
  readonly #layout: Layout;
  readonly #flags: number;
  readonly #replications = new Map<string, Replication>();
  readonly #used = new Set<string>();
  #subscription: Subscription | null = null;

  constructor(driver: Driver, options: RedisArbiterOptions) {
    const { isCluster, hasOneConnection, keyPrefix, database } = driver;
    this.namespace = options.namespace;
    this.#driver = driver;
    this.#options = options;
    this.#layout = new Layout(options.namespace, isCluster, keyPrefix, database);
    this.believesPushes = options.replicas === 0;
    const tellsRun = !hasOneConnection && options.replicas === 0;
    this.#flags = (isCluster ? UNCOUNTED : 0) + (tellsRun ? TELL_RUN : 0);
  }

  shardOf(key: string): string {
    return this.#layout.shardOf(key);
  }

  execute(shard: string, commands: readonly Command[]): Promise<Execution> {
    this.#used.add(shard);
    if (this.#options.replicas > 0) return this.#replicated(shard, commands);
    const before = this.#driver.changes();
    const register = this.#layout.registerOf(shard);
    const send: Send<unknown> = (command, args) => this.#driver.send(register, command, args);
    const read = (raw: unknown): Execution => this.#read(commands, raw, before);
    return this.#send(register, commands, this.#flags, send, read);
  }

  async *list(prefix: string): AsyncIterable<{ key: string; view: View }> {
    const found = await Promise.all(this.#layout.shards.map((shard) => this.#names(shard, prefix)));
    const names = found.flat().sort((a, b) => compareNames(a.key, b.key));
    for (let start = 0; start < names.length; start += LIST_CHUNK) {
      const chunk = names.slice(start, start + LIST_CHUNK);
      const views = new Map<string, View>();
      await Promise.all(listCalls(chunk).map((call) => this.#look(call, views)));
      for (const { key } of chunk) {
        const view = views.get(key) as View;
        if (view.holders.length + view.waiters.length > 0 || view.mark) yield { key, view };
      }
    }
  }

  /**
   * Commands do not wait for the subscription: a push that comes before it is up finds nobody,
   * which the server counts, or is missed; both heal by what the family asks after `onReset`.
   */
  listen(client: string, onPush: (push: Push) => void, onReset: () => void): void {
    this.#subscription = new Subscription(this.#driver, this.port, {
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

  /** Whoever entered a queue before that, but hears of it only now, missed pushes too. */
  async #afterAnswers(onReset: () => void): Promise<void> {
    // Servers answer in order: what was under way comes before the answer to this.
    await Promise.allSettled([...this.#used].map((shard) => this.execute(shard, [])));
    this.port.timers.after(0, onReset);
  }

  async explain(error: StoreError): Promise<StoreError> {
    const cause = await whyUnreachable(this.#driver);
    if (!cause) return error;
    const { outcome, retryable, lockName, store } = error;
    const servers = this.#driver.servers().map(({ host, port }) => `${host}:${port}`);
    const text = `${error.message} No Redis answers at ${servers.join(", ")} (${cause.message}).`;
    return new StoreError(text, { outcome, retryable, lockName, store, cause });
  }

  async close(): Promise<void> {
    this.#subscription?.close();
    for (const replication of this.#replications.values()) replication.close();
    await this.#options.onClose?.();
  }

  /** Sends before it returns, and with as few promises as can be: this is the way of every lock. */
  #send<A, T>(
    register: string,
    commands: readonly Command[],
    flags: number,
    send: Send<A>,
    read: (answer: A) => T,
  ): Promise<T> {
    const args = [SHA, "1", register];
    for (const { key } of commands) args.push(key);
    for (const command of commands) args.push(encode(command, this.#layout.channelPrefix));
    if (flags > 0) args.push(`${flags}`);
    return send("evalsha", args).then(read, (refusal: unknown) => {
      if (!isNoScript(refusal)) throw this.#error(refusal, register);
      args[0] = SCRIPT;
      return checkVersion(this.#driver, register, this.name)
        .then(() => send("eval", args))
        .then(read, (cause: unknown) => {
          throw this.#error(cause, register);
        });
    });
  }

  #error(cause: unknown, register?: string): StoreError {
    const errorOf = this.#driver.isCluster ? storeError : plainError;
    return errorOf(cause, this.name, register);
  }

  #read(commands: readonly Command[], raw: unknown, changesBefore: number): Execution {
    const changes = this.#driver.changes();
    // Alone and uncontended, the time says it all.
    const isLone = !Array.isArray(raw) && commands.length === 1;
    const answers: readonly unknown[] = Array.isArray(raw) ? raw : [];
    const nowUs = timeOf(isLone ? raw : answers[0]);
    const replies: (Reply | StoreError)[] = [];
    for (let at = 0; at < commands.length; at += 1) {
      const command = commands[at] as Command;
      replies.push(this.#reply(command, isLone ? loneAnswer(command) : answers[at + 1], nowUs));
    }
    // A connection is with one run of one server; where there are several, the answer tells.
    const run = this.#flags >= TELL_RUN ? String(answers[commands.length + 1]) : "";
    return { nowUs, node: `${run}/${changes}`, resent: changes !== changesBefore, replies };
  }

  /** A reply that cannot be read is unknown for its command, and for no other of the batch. */
  #reply(command: Command, answer: unknown, nowUs: number): Reply | StoreError {
    try {
      return isRefusal(answer)
        ? storeError(answer.slice(1), this.name)
        : decode(command, answer, nowUs);
    } catch (error) {
      return foreignData(this.#where(command.key), error);
    }
  }

  /** Where the data of a name is. */
  #where(key: string): string {
    const register = this.#layout.registerOf(this.shardOf(key));
    return `field ${JSON.stringify(key)} of ${register}, or ${register}:${key}`;
  }

  /** A grant or a renewal counts only when enough replicas have it. */
  async #replicated(shard: string, commands: readonly Command[]): Promise<Execution> {
    const isBelieved = commands.some(({ type }) => BELIEVED.has(type));
    const flags = this.#flags + (isBelieved ? PROVE : 0);
    const replication = this.#replication(shard);
    const send: Send<Replicated> = (command, args) =>
      replication.run([command, ...args], isBelieved);
    const register = this.#driver.keyPrefix + this.#layout.registerOf(shard);
    const answer = await this.#send(register, commands, flags, send, (replicated) => replicated);
    const read = this.#read(commands, answer.raw, this.#driver.changes());
    const execution = { ...read, node: answer.link };
    const doubt = read.replies.some(isPromise) ? await answer.doubt : null;
    if (!doubt) return execution;
    return {
      ...execution,
      replies: read.replies.map((reply) => (isPromise(reply) ? doubt : reply)),
    };
  }

  #replication(shard: string): Replication {
    let replication = this.#replications.get(shard);
    if (!replication) {
      const { replicas, replicaTimeoutMs } = this.#options;
      const { timers } = this.port;
      const register = this.#layout.registerOf(shard);
      replication = new Replication(this.#driver, timers, register, replicas, replicaTimeoutMs);
      this.#replications.set(shard, replication);
    }
    return replication;
  }

  /** The names in use. Those whose holder is long over are left out: nobody released them. */
  async #names(shard: string, prefix: string): Promise<Listed[]> {
    const register = this.#layout.registerOf(shard);
    const { nowUs } = await this.#within(this.execute(shard, []));
    const names = new Map<string, Listed>();
    let cursor = "0";
    do {
      const args = [register, cursor, "MATCH", patternOf(prefix), "COUNT", `${SCAN_COUNT}`];
      const answer = await this.#within(this.#driver.send(register, "hscan", args), register);
      const [next, fields] = answer as [unknown, readonly unknown[]];
      for (let at = 0; at < fields.length; at += 2) {
        const [key, text] = [String(fields[at]), String(fields[at + 1])];
        // The field with the empty name has the last token.
        if (key === "" || expiryUs(text) <= nowUs) continue;
        names.set(key, { shard, key, hasHash: text.startsWith("=") });
      }
      cursor = String(next);
    } while (cursor !== "0");
    return [...names.values()];
  }

  /** A list does not travel by the channel, which minds the time of all else. */
  #within<T>(answer: Promise<T>, register?: string): Promise<T> {
    return within(this.port.timers, LIST_CALL_MS, answer).catch((error: unknown) => {
      throw this.#error(error, register);
    });
  }

  async #look(names: readonly Listed[], views: Map<string, View>): Promise<void> {
    const commands = names.map(({ key }) => ({ type: "inspect", key }) as const);
    const { replies } = await this.#within(this.execute(names[0]?.shard ?? "", commands));
    for (const [at, reply] of replies.entries()) {
      const { key = "" } = names[at] ?? {};
      if (isForeign(reply)) {
        reportForeign(this.name, this.#where(key), reply);
        views.set(key, { type: "view", holders: [], waiters: [], mark: null });
      } else if (reply instanceof Error) throw reply;
      else views.set(key, reply as View);
    }
  }
}

function timeOf(answer: unknown): number {
  try {
    return whole(answer);
  } catch (error) {
    throw foreignData("the reply to a script", error);
  }
}

function loneAnswer(command: Command): string {
  return command.type === "release" ? "R" : "G";
}

function isRefusal(answer: unknown): answer is string {
  return typeof answer === "string" && answer[0] === "!";
}

/** An answer that somebody will believe. */
function isPromise(reply: Reply | StoreError): boolean {
  return !(reply instanceof Error) && (reply.type === "granted" || reply.type === "renewed");
}
