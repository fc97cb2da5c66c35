import { createHash } from "node:crypto";
import type { Driver } from "../redis/driver.js";
import { isNoScript, storeError } from "../redis/failure.js";
import { SCRIPT } from "./script.generated.js";

const SHA = createHash("sha1").update(SCRIPT).digest("hex");

/**
 * A client may keep what it cannot send, for as long as its server is away. More than this would
 * only be a flood of outdated requests on its return.
 */
const MOST_UNANSWERED = 10_000;

/** One of the independent servers. */
export class RedlockNode {
  readonly name: string;
  readonly driver: Driver;
  #unanswered = 0;

  constructor(name: string, driver: Driver) {
    this.name = name;
    this.driver = driver;
  }

  /** Runs a verb of the node's script; sent before it returns. Rejects with a `StoreError`. */
  ask(keys: readonly string[], args: readonly string[]): Promise<unknown> {
    if (this.#unanswered >= MOST_UNANSWERED) {
      return Promise.reject(storeError(`${MOST_UNANSWERED} requests before it are unanswered`));
    }
    this.#unanswered += 1;
    const all = [SHA, `${keys.length}`, ...keys, ...args];
    const [key = ""] = keys;
    return this.driver.send(key, "evalsha", all).then(
      (raw) => {
        this.#unanswered -= 1;
        return raw;
      },
      (error: unknown) => {
        this.#unanswered -= 1;
        if (!isNoScript(error)) throw storeError(error);
        all[0] = SCRIPT;
        return this.driver.send(key, "eval", all).catch((cause: unknown) => {
          throw storeError(cause);
        });
      },
    );
  }
}
