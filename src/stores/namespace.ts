import { InvalidOptionError } from "../errors/index.js";
import { isWellFormed } from "../rules/name.js";

/** The namespace of a store, the same rule for all: locks of two namespaces must never meet. */
export function checkNamespace(namespace: unknown = ""): string {
  if (typeof namespace === "string" && isWellFormed(namespace)) return namespace;
  throw new InvalidOptionError("namespace", namespace, "must be a well-formed string");
}
