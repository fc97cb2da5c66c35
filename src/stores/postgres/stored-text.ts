/**
 * Texts as Postgres keeps them. Its `text` cannot hold U+0000, so that character and the escape
 * character U+0001 become two characters each. The order of two texts and their common prefixes
 * stay the same: `list` needs both.
 */
const ESCAPE = "\u0001";
const ESCAPED_NUL = "\u0001\u0001";
const ESCAPED_ESCAPE = "\u0001\u0002";

export function toStored(text: string): string {
  if (!text.includes("\0") && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, ESCAPED_ESCAPE).replaceAll("\0", ESCAPED_NUL);
}

/** The text that `toStored` was given. */
export function fromStored(stored: string): string {
  if (!stored.includes(ESCAPE)) return stored;
  return stored.replaceAll(ESCAPED_NUL, "\0").replaceAll(ESCAPED_ESCAPE, ESCAPE);
}

/** The literal of a `text[]`: one string, whatever the driver does with arrays. */
export function arrayLiteral(words: readonly string[]): string {
  return `{${words.map(quoted).join(",")}}`;
}

/** The literal of a record. As an element of an array literal it is escaped once more. */
export function recordLiteral(fields: readonly (string | null)[]): string {
  return `(${fields.map((field) => (field === null ? "" : plainOrQuoted(field))).join()})`;
}

function plainOrQuoted(field: string): string {
  return /^\w+$/.test(field) ? field : `"${field.replace(/["\\]/g, "\\$&")}"`;
}

function quoted(word: string): string {
  const stored = toStored(word);
  return `"${/["\\]/.test(stored) ? stored.replace(/["\\]/g, "\\$&") : stored}"`;
}
