/**
 * Texts from a store, a URL or a command line are written by other people. Some characters in them
 * steer a terminal (control characters), change the order in which a line is read (bidirectional
 * overrides), start a new line (U+2028, U+2029), or hide (zero-width characters): with these a
 * holder could forge what `list` shows. Every text that the command line writes passes through this
 * file.
 */

/** Control, format and lone surrogate characters, and the separators of lines and paragraphs. */
const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The text with `?` in the place of every such character; its length stays the same. */
export function plain(text: string): string {
  return text.replace(STEERING, (letter) => "?".repeat(letter.length));
}

/**
 * JSON that parses to the same value, with every such character escaped. Tokens become strings: a
 * JSON number would lose their last digits.
 */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value, (_key, item) =>
    typeof item === "bigint" ? String(item) : item,
  );
  return text.replace(STEERING, (letter) => letter.split("").map(escaped).join(""));
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
