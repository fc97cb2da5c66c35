import type { StoreError } from "../../errors.js";
import { foreignData } from "../../foreign-data.js";
import type { Command, Reply } from "../../rules/ledger-command.js";
import type { Execution } from "../arbiter/arbiter.js";
import { checkVersion } from "../redis-client/check-version.js";
import type { Driver } from "../redis-client/driver.js";
import { isNoScript, plainError, storeError } from "../redis-client/failure.js";
import { sha1 } from "../redis-client/sha1.js";
import { encode } from "./codec.js";
import type { Layout } from "./layout.js";
import { SCRIPT } from "./script.generated.js";
import { ScriptAnswer } from "./script-answer.js";

const STORE = "redis";
const SHA = sha1(SCRIPT);

/** Flags of a batch. In a Cluster PUBLISH does not count the listeners of other nodes. */
export const CLUSTER = 1;
/** The answer names the run of the server. */
export const TELL_RUN = 2;
/** The script writes, so that WAIT proves that replicas have the answer. */
export const PROVE = 4;

/** Sends a command and gives its answer. */
type Send<A> = (command: string, args: readonly string[]) => Promise<A>;

/** The script in Redis that runs batches of commands. */
export class RedisScript {
  readonly #driver: Driver;
  readonly #layout: Layout;

  constructor(driver: Driver, layout: Layout) {
    this.#driver = driver;
    this.#layout = layout;
  }

  /** The arguments that run a batch on a register. */
  argsOf(register: string, commands: readonly Command[], flags: number): string[] {
    const keys = commands.map(({ key }) => key);
    const args = [SHA, "1", register, ...keys, ...encode(commands, this.#layout.channelPrefix)];
    if (flags > 0) args.push(`${flags}`);
    return args;
  }

  /** Sends before it returns, and makes few promises: every command of every lock comes here. */
  run<A, T>(args: string[], send: Send<A>, read: (answer: A) => T): Promise<T> {
    const [, , register = ""] = args;
    return send("evalsha", args).then(read, (refusal: unknown) => {
      if (!isNoScript(refusal)) throw this.error(refusal, register);
      args[0] = SCRIPT;
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
    const answer = this.#answer(commands, raw, flags >= TELL_RUN);
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
