import { InvalidOptionError } from "./errors.js";
import { nearestWord } from "./rules/nearest-word.js";

/**
 * The given options, which have known names only: a misspelt `namespace` that is ignored would lock
 * elsewhere. `example` shows how they are given. None counts as an object without any.
 */
export function knownOptions<T extends object>(
  given: T | undefined,
  known: readonly (keyof T & string)[],
  example = "must be an object",
): T {
  if (given === undefined) return {} as T;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new InvalidOptionError("options", given, example);
  }
  for (const name of Object.keys(given)) {
    // Its value is not shown: it may be a secret.
    if (!known.includes(name as keyof T & string)) throw unknownWord("option", name, name, known);
  }
  return given;
}

/** What other libraries of locks call an option. */
const OTHER_WORDS: ReadonlyMap<string, string> = new Map([
  ["timeout", "waitMs"],
  ["timeoutMs", "waitMs"],
  ["retryCount", "waitMs"],
  ["retryDelay", "waitMs"],
  ["retries", "waitMs"],
  ["duration", "ttlMs"],
  ["expire", "ttlMs"],
  ["expires", "ttlMs"],
  ["expiry", "ttlMs"],
]);

/** The error for a word that is none of the known ones; `what` says what it should be one of. */
export function unknownWord(
  what: string,
  option: string,
  word: string,
  known: readonly string[],
): InvalidOptionError {
  const other = OTHER_WORDS.get(word);
  const nearest = other && known.includes(other) ? other : nearestWord(word, known);
  const list = known.join(", ");
  const all = list === "" ? `: there are no ${what}s.` : `. The ${what}s are: ${list}.`;
  const advice = nearest === null ? all : `: did you mean ${nearest}?`;
  const message = `Unknown ${what} ${JSON.stringify(word)}${advice}`;
  const rule = `is no ${what} (the ${what}s are: ${list || "none"})`;
  return new InvalidOptionError(option, word, rule, message);
}
