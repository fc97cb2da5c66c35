import type { StoreError } from "../../errors.js";
import { foreignData, reportForeign } from "../../foreign-data.js";
import { checkVersion } from "../redis-client/check-version.js";
import type { Driver } from "../redis-client/driver.js";
import { isNoScript } from "../redis-client/failure.js";
import { sha1 } from "../redis-client/sha1.js";
import { nodeError } from "./failure.js";
import { SCRIPT } from "./script.generated.js";

/** The script of a node, and the hash by which a server knows it. */
export interface NodeScript {
  readonly text: string;
  readonly sha: string;
}

function script(isLone: boolean, isSpread: boolean): NodeScript {
  const text = `local IS_LONE, IS_SPREAD = ${isLone}, ${isSpread}\n${SCRIPT}`;
  return { text, sha: sha1(text) };
}

/** A node of several; a server that decides alone; and a Cluster that does. */
export const NODE_SCRIPTS: Readonly<Record<"node" | "lone" | "spread", NodeScript>> = {
  node: script(false, false),
  lone: script(true, false),
  spread: script(true, true),
};

/** The arguments of a call of a script, by its hash. */
export function scriptCall(
  { sha }: NodeScript,
  keys: readonly string[],
  args: readonly string[],
): readonly string[] {
  return [sha, `${keys.length}`, ...keys, ...args];
}

/**
 * A client may keep requests for as long as its server is away. More requests than this would only
 * be a flood of outdated requests when the server returns.
 */
const MOST_UNANSWERED = 10_000;

/** One of the independent servers. */
export class RedlockNode {
  readonly name: string;
  readonly driver: Driver;
  readonly script: NodeScript;
  #unanswered = 0;

  constructor(name: string, driver: Driver, nodeScript: NodeScript = NODE_SCRIPTS.node) {
    this.name = name;
    this.driver = driver;
    this.script = nodeScript;
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
      this.send(scriptCall(this.script, keys, args), 0, { onAnswer, onError });
    });
  }

  /** Sends a call that goes to many nodes; `at` tells the recipient which of them this one is. */
  send(call: readonly string[], at: number, recipient: Recipient): void {
    if (this.#unanswered >= MOST_UNANSWERED) {
      const full = `${MOST_UNANSWERED} requests before it are unanswered`;
      return recipient.onError(at, nodeError(this.name, full));
    }
    this.#unanswered += 1;
    const { driver } = this;
    const [, , key = ""] = call;
    driver.send(key, "evalsha", call).then(
      (raw) => {
        this.#unanswered -= 1;
        recipient.onAnswer(at, this, raw);
      },
      (error: unknown) => {
        this.#unanswered -= 1;
        if (!isNoScript(error)) return recipient.onError(at, nodeError(this.name, error));
        checkVersion(driver, key, "redlock")
          .then(() => driver.send(key, "eval", [this.script.text, ...call.slice(1)]))
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
