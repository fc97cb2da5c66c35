import { describe, expect, it } from "vitest";
import { cutReason, MAX_REASON_BYTES, reasonProblem } from "./reason.js";

describe("a reason", () => {
  it.each([
    ["the longest", "x".repeat(MAX_REASON_BYTES), null],
    ["one byte more", "x".repeat(MAX_REASON_BYTES + 1), "must have at most 1024 bytes"],
    ["bytes count, not letters", "ä".repeat(513), "must have at most 1024 bytes"],
    ["none", "", "must say why: the holder reads it"],
    ["no text", 7, "must say why: the holder reads it"],
    ["half a character", "\ud83d", "must be well-formed unicode"],
  ])("%s", (_what, reason, problem) => {
    expect(reasonProblem(reason)).toBe(problem);
  });

  it.each(["x", "ä", "€", "🙂"])("of many %s is cut between two characters", (letter) => {
    const cut = cutReason(`a${letter.repeat(5_000_000 / letter.length)}`);
    expect(cut).toMatch(new RegExp(`^a(${letter})+$`, "u"));
    const room = MAX_REASON_BYTES - Buffer.byteLength(cut);
    expect(room).toBeGreaterThanOrEqual(0);
    expect(room).toBeLessThan(Buffer.byteLength(letter));
  });

  it("that fits is not cut", () => {
    for (const text of ["", "short", "x".repeat(1_024), "ä".repeat(512)]) {
      expect(cutReason(text)).toBe(text);
    }
  });
});
