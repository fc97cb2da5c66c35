import type { Store } from "../../contract/store.js";
import { InvalidOptionError } from "../../errors/index.js";
import { checkParameters } from "../store-url.js";
import { MemorySpace } from "./memory-space.js";
import { memoryStore } from "./memory-store.js";

const WARN = "warnInProduction";
const named = new Map<string, MemorySpace>();

/**
 * `memory:` is a space of its own. All callers of this process that open `memory:name` share one
 * space, with slashes before the name or without.
 */
export function openMemoryStore(url: URL): Store {
  checkParameters(url, [WARN]);
  const warn = url.searchParams.get(WARN) ?? "true";
  if (warn !== "true" && warn !== "false") {
    throw new InvalidOptionError(WARN, warn, "must be true or false");
  }
  const warnInProduction = warn === "true";
  const name = url.host + url.pathname;
  if (name === "") return memoryStore({ warnInProduction });
  const space = named.get(name) ?? new MemorySpace();
  named.set(name, space);
  return memoryStore({ space, warnInProduction });
}
