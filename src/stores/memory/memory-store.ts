import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { LedgerStore } from "../../families/ledger/ledger-store.js";
import { knownOptions } from "../../options/known-options.js";
import { MemoryArbiter } from "./memory-arbiter.js";
import { MemorySpace } from "./memory-space.js";

/** Which locks in memory to use. */
export interface MemoryStoreOptions {
  /** Stores with the same space share their locks. Default: a space of its own. */
  readonly space?: MemorySpace;
  /** How long a handed-off grant waits for its confirm. Default: 2 s or a sixth of the ttl. */
  readonly offerMs?: number;
  /**
   * Warns once in a process whose `NODE_ENV` is `production`, since other processes are not
   * excluded. Default true; false where one process is all there is.
   */
  readonly warnInProduction?: boolean;
}

const EXAMPLE = "must be an object: memoryStore({ space })";

/**
 * Locks of one process: for tests, tools and programs that run once.
 *
 * @example
 * import { Holdfast } from "holdfast";
 * import { MemorySpace, memoryStore } from "holdfast/memory";
 *
 * const space = new MemorySpace(); // two that share a space exclude each other
 * const ours = new Holdfast(memoryStore({ space }));
 * const theirs = new Holdfast(memoryStore({ space }));
 */
export function memoryStore(options?: MemoryStoreOptions): Store {
  const {
    space = new MemorySpace(),
    offerMs,
    warnInProduction = true,
  } = knownOptions(options, ["space", "offerMs", "warnInProduction"], EXAMPLE);
  if (!(space instanceof MemorySpace)) {
    throw new InvalidOptionError("space", space, "must be a MemorySpace");
  }
  if (typeof warnInProduction !== "boolean") {
    throw new InvalidOptionError("warnInProduction", warnInProduction, "must be true or false");
  }
  if (warnInProduction) warnOfProduction();
  const arbiter = new MemoryArbiter(space);
  return new LedgerStore(arbiter, offerMs === undefined ? {} : { offerMs });
}

let hasWarned = false;

/** A service that locks in memory seems to work until a second process of it runs. */
function warnOfProduction(): void {
  if (hasWarned || process.env.NODE_ENV !== "production") return;
  hasWarned = true;
  process.emitWarning("The memory store excludes no other process, and NODE_ENV is production.", {
    type: "HoldfastWarning",
    code: "HF_MEMORY_IN_PRODUCTION",
    detail:
      "Use a store that all processes share, or memoryStore({ warnInProduction: false }) if " +
      "there is only this one.",
  });
}
