import type { Store } from "../contract/store.js";
import { InvalidOptionError } from "../errors/index.js";
import { knownOptions } from "../options/known-options.js";
import { type AcquireOptions, OPTION_NAMES } from "../options/options.js";
import { openerOf, openStore } from "../stores/open-store.js";
import { Holdfast } from "./holdfast.js";

/** The options of `connect`: defaults for all locks, and how the store is opened. */
export interface ConnectOptions extends AcquireOptions {
  /**
   * Open the store in a worker thread, which renews leases while the event loop of the caller is
   * blocked. All such stores of a process share one thread. Default false. Not for `memory:`.
   */
  readonly thread?: boolean | undefined;
}

/**
 * Opens the store that a URL names, with defaults for all locks; `close` closes it again.
 *
 * @example
 * import { connect } from "holdfast";
 *
 * const locks = await connect("redis://localhost:6379/5", { waitMs: 5_000 });
 */
export async function connect(url: string, options?: ConnectOptions): Promise<Holdfast> {
  const { thread = false, ...defaults } = knownOptions(options, [...OPTION_NAMES, "thread"]);
  if (typeof thread !== "boolean") {
    throw new InvalidOptionError("thread", thread, "must be true or false");
  }
  const store = await (thread ? openInThread(url) : openStore(url));
  try {
    return new Holdfast(store, defaults);
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function openInThread(url: string): Promise<Store> {
  if (openerOf(url).parsed.protocol === "memory:") {
    const rule = "must be false for memory:, whose locks live in this very thread";
    throw new InvalidOptionError("thread", true, rule);
  }
  // Imported on demand, because few programs need it.
  const { openThreadStore } = await import("../thread/thread-store.js");
  return openThreadStore(url);
}
