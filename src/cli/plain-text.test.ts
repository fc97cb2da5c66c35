import { describe, expect, it } from "vitest";
import { plain, toJson } from "./plain-text.js";

const STEERING: readonly (readonly [what: string, from: number, to: number])[] = [
  ["C0 controls", 0x00, 0x1f],
  ["DEL and C1 controls", 0x7f, 0x9f],
  ["the soft hyphen", 0xad, 0xad],
  ["the Arabic letter mark", 0x61c, 0x61c],
  ["zero-width characters and directional marks", 0x200b, 0x200f],
  ["separators and bidirectional embeddings and overrides", 0x2028, 0x202e],
  ["invisible operators and bidirectional isolates", 0x2060, 0x2064],
  ["bidirectional isolates", 0x2066, 0x2069],
  ["lone surrogates", 0xd800, 0xdfff],
  ["the byte order mark", 0xfeff, 0xfeff],
  ["tags", 0xe0001, 0xe0001],
];

describe.each(STEERING)("%s", (_what, from, to) => {
  const letters = Array.from({ length: to - from + 1 }, (_, index) =>
    String.fromCodePoint(from + index),
  );

  it("are shown as ?", () => {
    for (const letter of letters) {
      expect(plain(`a${letter}b`)).toBe(`a${"?".repeat(letter.length)}b`);
    }
  });

  it("are escaped in JSON, which parses to the same value", () => {
    for (const letter of letters) {
      const text = toJson({ [`k${letter}`]: `v${letter}w` });
      expect(text).toMatch(/^[ -~]+$/);
      expect(JSON.parse(text)).toEqual({ [`k${letter}`]: `v${letter}w` });
    }
  });
});

it("leaves all other text as it is", () => {
  const text = "deploy:web größer 日本語 🙂 e\u0301 a b";
  expect(plain(text)).toBe(text);
  expect(toJson({ text, token: 17n })).toBe(`{"text":"${text}","token":"17"}`);
});
