import { present } from "../../errors/assert.js";
import { StoreError } from "../../errors/index.js";
import { foreignData } from "../../events/foreign-data.js";
import type { Execution } from "../../families/ledger/arbiter.js";
import type { Command, Reply } from "../../rules/ledger-command.js";
import type { Driver } from "../redis-client/client.js";
import { checkVersion, sha1 } from "../redis-client/client.js";
import { isNoScript, plainError, storeError } from "../redis-client/errors.js";
import { callsOf, Encoder, verbOf } from "./codec.js";
import type { Layout } from "./layout.js";
import { SCRIPTS, type Verb } from "./script.generated.js";
import { ScriptAnswer } from "./script-answer.js";

const STORE = "redis";

/** A script, and the SHA-1 by which a server that knows it finds it. */
interface Loaded {
  readonly text: string;
  readonly sha: string;
}

const loaded = {} as Partial<Record<Verb, Loaded>>;

function scriptOf(verb: Verb): Loaded {
  const text = SCRIPTS[verb];
  loaded[verb] ??= { text, sha: sha1(text) };
  return loaded[verb];
}

/** Flags of a batch. In a Cluster PUBLISH does not count the listeners of other nodes. */
export const CLUSTER = 1;
/** The answer names the run of the server. */
export const TELL_RUN = 2;
/** The script writes, so that WAIT proves that replicas have the answer. */
export const PROVE = 4;

/** Sends a command and gives its answer. */
type Send<A> = (command: string, args: readonly string[]) => Promise<A>;

/** The scripts in Redis that run batches of commands, one for each verb. */
export class RedisScript {
  readonly #driver: Driver;
  readonly #layout: Layout;
  readonly #encoder: Encoder;

  constructor(driver: Driver, layout: Layout) {
    this.#driver = driver;
    this.#layout = layout;
    this.#encoder = new Encoder(layout.channelPrefix);
  }

  /**
   * Runs a batch. Commands of one verb travel as one call; calls are sent in their order without a
   * wait in between. `call` runs commands of one verb.
   */
  async batch(
    commands: readonly Command[],
    call: (commands: readonly Command[]) => Promise<Execution>,
  ): Promise<Execution> {
    const calls = callsOf(commands);
    const settled = await Promise.allSettled(calls.map((one) => call(one.commands)));
    const answers = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const [first] = answers;
    const failure = settled.find((one) => one.status === "rejected")?.reason;
    if (!first) throw failure;
    const replies: (Reply | StoreError)[] = [];
    for (const [at, { places }] of calls.entries()) {
      const result = present(settled[at], "every call settles");
      for (const [index, place] of places.entries()) {
        if (result.status === "rejected") replies[place] = this.error(result.reason);
        // The times of two servers cannot be compared.
        else if (result.value.node !== first.node) replies[place] = serverChanged();
        else replies[place] = present(result.value.replies[index], "every command has a reply");
      }
    }
    // Deadlines count from the earliest sending.
    const sentMs = Math.min(...answers.map((one) => one.sentMs ?? Number.NEGATIVE_INFINITY));
    return {
      nowUs: first.nowUs,
      node: first.node,
      resent: answers.some(({ resent }) => resent),
      replies,
      ...(Number.isFinite(sentMs) && { sentMs }),
    };
  }

  /** Sends before it returns, and makes few promises: every command of every lock comes here. */
  run<A, T>(
    register: string,
    commands: readonly Command[],
    flags: number,
    send: Send<A>,
    read: (answer: A) => T,
  ): Promise<T> {
    const [first] = commands;
    const script = scriptOf(first ? verbOf(first) : "acquire");
    const args = [script.sha, "1", register];
    if (first && commands.length === 1) args.push(first.key, this.#encoder.encodeOne(first));
    else {
      for (const { key } of commands) args.push(key);
      args.push(...this.#encoder.encode(commands));
    }
    if (flags > 0) args.push(`${flags}`);
    return send("evalsha", args).then(read, (refusal: unknown) => {
      if (!isNoScript(refusal)) throw this.error(refusal, register);
      args[0] = script.text;
      return checkVersion(this.#driver, register, STORE)
        .then(() => send("eval", args))
        .then(read, (cause: unknown) => {
          throw this.error(cause, register);
        });
    });
  }

  /** The answer to a batch that was sent when the client had changed its connection so often. */
  read(commands: readonly Command[], raw: unknown, changesBefore: number, flags = 0): Execution {
    const changes = this.#driver.changes();
    const answer = this.#answer(commands, raw, (flags & TELL_RUN) !== 0);
    const replies = commands.map((command, at) => this.#reply(command, answer, at));
    // A client with one connection reaches one run of one server until that connection changes.
    const node = `${answer.run}/${changes}`;
    return { nowUs: answer.nowUs, node, resent: changes !== changesBefore, replies };
  }

  error(cause: unknown, register?: string): StoreError {
    const errorOf = this.#driver.isCluster ? storeError : plainError;
    return errorOf(cause, STORE, register);
  }

  /** The places of a name's data, for errors. */
  placeOf(key: string): string {
    const register = this.#layout.registerOf(this.#layout.shardOf(key));
    return `field ${JSON.stringify(key)} of ${register}, or ${register}:${key}`;
  }

  #answer(commands: readonly Command[], raw: unknown, tellsRun: boolean): ScriptAnswer {
    try {
      return new ScriptAnswer(commands, raw, tellsRun);
    } catch (error) {
      throw foreignData("the reply to a script", error);
    }
  }

  /** If one reply cannot be read, the outcome of its command is unknown, and of no other. */
  #reply(command: Command, answer: ScriptAnswer, at: number): Reply | StoreError {
    try {
      const text = answer.text(at);
      return isRefusal(text) ? storeError(text.slice(1), STORE) : answer.reply(at);
    } catch (error) {
      return foreignData(this.placeOf(command.key), error);
    }
  }
}

function isRefusal(answer: unknown): answer is string {
  return typeof answer === "string" && answer[0] === "!";
}

function serverChanged(): StoreError {
  const message = "The connection to Redis changed while a batch was under way.";
  return new StoreError(message, { outcome: "unknown", store: STORE });
}
