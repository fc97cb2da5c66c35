import { InvalidOptionError } from "../errors/index.js";
import { nearestWord } from "./nearest-word.js";

/**
 * Checks the names of the given options and returns the options; undefined counts as none. Without
 * this check, a misspelt `namespace` would silently use the wrong locks. `example` is shown in the
 * error.
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
    // The value is not shown, because it may be a secret.
    if (!known.includes(name as keyof T & string)) throw unknownWord("option", name, name, known);
  }
  return given;
}

/** What other lock libraries call these options. */
const OTHER_WORDS = [
  [/^(timeout|retr)/, "waitMs"],
  [/^(expir|duration)/, "ttlMs"],
] as const;

/** The error for an unknown word. `what` says what kind of word it is, such as "option". */
export function unknownWord(
  what: string,
  option: string,
  word: string,
  known: readonly string[],
): InvalidOptionError {
  const other = OTHER_WORDS.find(([pattern, name]) => pattern.test(word) && known.includes(name));
  const nearest = other?.[1] ?? nearestWord(word, known);
  const all = known.length > 0 ? `. The ${what}s are: ${known.join(", ")}.` : ": there are none.";
  const advice = nearest === null ? all : `: did you mean ${nearest}?`;
  const message = `Unknown ${what} ${JSON.stringify(word)}${advice}`;
  return new InvalidOptionError(option, word, `is no ${what}${all}`, message);
}
