import type { StoreError } from "../../errors/index.js";
import { foreignData, reportForeign } from "../../events/foreign-data.js";
import type { Driver } from "../redis-client/client.js";
import { checkVersion, sha1 } from "../redis-client/client.js";
import { isNoScript } from "../redis-client/errors.js";
import { nodeError } from "./failure.js";
import { NODE, RELEASE, VOTE } from "./script.generated.js";

/** One text of Lua, and the hash by which a server knows it. */
interface NodeScript {
  readonly text: string;
  readonly sha: string;
}

/** The scripts of a node: one for each of the two frequent verbs, one for all others. */
interface NodeScripts {
  readonly vote: NodeScript;
  readonly release: NodeScript;
  readonly others: NodeScript;
}

function scripts(isLone: boolean, isSpread: boolean): NodeScripts {
  const script = (lua: string): NodeScript => {
    const text = `local IS_LONE, IS_SPREAD = ${isLone}, ${isSpread}\n${lua}`;
    return { text, sha: sha1(text) };
  };
  return { vote: script(VOTE), release: script(RELEASE), others: script(NODE) };
}

/** A node of several; a server that decides alone; and a Cluster that does. */
export const NODE_SCRIPTS: Readonly<Record<"node" | "lone" | "spread", NodeScripts>> = {
  node: scripts(false, false),
  lone: scripts(true, false),
  spread: scripts(true, true),
};

/** A verb with its arguments, ready for any node of a store. */
export interface NodeCall {
  readonly keys: readonly string[];
  /** The verb comes first. */
  readonly args: readonly string[];
  readonly script: NodeScript;
  /** The arguments of EVALSHA. */
  readonly line: readonly string[];
}

export function nodeCall(
  { vote, release, others }: NodeScripts,
  keys: readonly string[],
  args: readonly string[],
): NodeCall {
  const [verb, ...rest] = args;
  const script = verb === "vote" ? vote : verb === "release" ? release : others;
  const given = script === others ? args : rest;
  return { keys, args, script, line: [script.sha, `${keys.length}`, ...keys, ...given] };
}

/**
 * A client may keep requests for as long as its server is away. More requests than this would only
 * be a flood of outdated requests when the server returns.
 */
const MAX_UNANSWERED = 10_000;

/** One of the independent servers. */
export class RedlockNode {
  readonly name: string;
  readonly driver: Driver;
  readonly scripts: NodeScripts;
  #unanswered = 0;

  constructor(name: string, driver: Driver, nodeScripts: NodeScripts = NODE_SCRIPTS.node) {
    this.name = name;
    this.driver = driver;
    this.scripts = nodeScripts;
  }

  /** Publishes foreign data in a reply: a caller whose majority holds hears of it no other way. */
  reportForeign(what: string, cause?: unknown): StoreError {
    const error = foreignData(what, cause);
    reportForeign("redlock", `${what} (node ${this.name})`, error);
    return error;
  }

  /** Runs a verb of the script; sent before it returns. Rejects with a `StoreError`. */
  ask(keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onAnswer = (_at: number, _node: RedlockNode, raw: unknown): void => resolve(raw);
      const onError = (_at: number, error: StoreError): void => reject(error);
      this.send(nodeCall(this.scripts, keys, args), 0, { onAnswer, onError });
    });
  }

  /** Sends a call that goes to many nodes; `at` tells the recipient which of them this one is. */
  send(call: NodeCall, at: number, recipient: Recipient): void {
    if (this.#unanswered >= MAX_UNANSWERED) {
      const full = `${MAX_UNANSWERED} requests before it are unanswered`;
      return recipient.onError(at, nodeError(this.name, full));
    }
    this.#unanswered += 1;
    const { driver } = this;
    const { keys, script, line } = call;
    const [key = ""] = keys;
    driver.send(key, "evalsha", line).then(
      (raw) => {
        this.#unanswered -= 1;
        recipient.onAnswer(at, this, raw);
      },
      (error: unknown) => {
        this.#unanswered -= 1;
        if (!isNoScript(error)) return recipient.onError(at, nodeError(this.name, error));
        checkVersion(driver, key, "redlock")
          .then(() => driver.send(key, "eval", [script.text, ...line.slice(1)]))
          .then(
            (raw) => recipient.onAnswer(at, this, raw),
            (cause: unknown) => recipient.onError(at, nodeError(this.name, cause)),
          );
      },
    );
  }
}

/** Gets the answers of many nodes to one call. */
export interface Recipient {
  onAnswer(at: number, node: RedlockNode, raw: unknown): void;
  onError(at: number, error: StoreError): void;
}
