import type { StoreError } from "../../errors.js";
import { foreignData, reportForeign } from "../../foreign-data.js";
import { checkVersion } from "../redis-client/check-version.js";
import type { Driver } from "../redis-client/driver.js";
import { isNoScript } from "../redis-client/failure.js";
import { sha1 } from "../redis-client/sha1.js";
import type { ByCommands } from "./by-commands.js";
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
  /** Null while the server runs scripts, or was not asked yet. */
  #byCommands: ByCommands | null = null;
  #probe: Promise<ByCommands | null> | null = null;

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
    if (this.#byCommands) return this.#sendCommands(this.#byCommands, call, at, recipient);
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
        if (!isNoScript(error)) return this.#onRefusal(error, call, at, recipient);
        checkVersion(driver, key, "redlock")
          .then(() => driver.send(key, "eval", [this.script.text, ...call.slice(1)]))
          .then(
            (raw) => recipient.onAnswer(at, this, raw),
            (cause: unknown) => this.#onRefusal(cause, call, at, recipient),
          );
      },
    );
  }

  /** Whether this user may run scripts here, as far as it is known. */
  get hasScripts(): boolean {
    return this.#byCommands === null;
  }

  /** A lone server may do without scripts; several nodes, and looks at replicas, need them. */
  #onRefusal(cause: unknown, call: readonly string[], at: number, recipient: Recipient): void {
    const refuse = (): void => recipient.onError(at, nodeError(this.name, cause));
    const needsScripts = this.script === NODE_SCRIPTS.node || this.driver.readsReplicas;
    if (needsScripts || !isScriptRefusal(cause)) return refuse();
    const [, , , , ballot = ""] = call;
    this.#probe ??= this.#probed(ballot);
    this.#probe.then(
      (byCommands) => {
        if (!byCommands) return refuse();
        this.#byCommands = byCommands;
        this.#sendCommands(byCommands, call, at, recipient);
      },
      () => {
        // No answer: the next call asks again.
        this.#probe = null;
        refuse();
      },
    );
  }

  /** Null where the server has no native comparison either. */
  async #probed(ballot: string): Promise<ByCommands | null> {
    // Only users without the right to run scripts need this.
    const { ByCommands } = await import("./by-commands.js");
    return (await ByCommands.isPossible(this.driver, ballot)) ? new ByCommands(this.driver) : null;
  }

  #sendCommands(
    byCommands: ByCommands,
    call: readonly string[],
    at: number,
    recipient: Recipient,
  ): void {
    const count = 2 + Number(call[1]);
    this.#unanswered += 1;
    byCommands
      .run(call.slice(2, count), call.slice(count))
      .finally(() => {
        this.#unanswered -= 1;
      })
      .then(
        (raw) => recipient.onAnswer(at, this, raw),
        (cause: unknown) => recipient.onError(at, nodeError(this.name, cause)),
      );
  }
}

/** The server does not let this user run scripts, or does not know scripts at all. */
function isScriptRefusal(error: unknown): boolean {
  const text = error instanceof Error ? error.message : "";
  return /^(NOPERM|ERR).*(permissions to run|unknown command).*\beval/i.test(text);
}

/** Gets the answers of many nodes to one call. */
export interface Recipient {
  onAnswer(at: number, node: RedlockNode, raw: unknown): void;
  onError(at: number, error: StoreError): void;
}
