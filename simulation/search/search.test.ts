import { describe, expect, it } from "vitest";
import { type Move, search, type World } from "./search.js";

/** A walker on a strip of seven fields that may take one step or two; it calmly walks home. */
class Strip implements World<number> {
  readonly start = 0;
  readonly forbidden: number;
  readonly home: number;

  constructor(forbidden = -1, home = 6) {
    this.forbidden = forbidden;
    this.home = home;
  }

  moves(at: number): Move<number>[] {
    return [1, 2]
      .filter((length) => at + length <= 6)
      .map((length) => ({ label: `${at}+${length}`, next: at + length }));
  }

  keyOf(at: number): string {
    return String(at);
  }

  wrongIn(at: number): string | null {
    return at === this.forbidden ? `on ${at}` : null;
  }

  calmFrom(at: number): Move<number>[] {
    return [{ label: "calm", next: at }];
  }

  calm(at: number): Move<number> | null {
    return at < this.home ? { label: `${at}>`, next: at + 1 } : null;
  }

  wrongAtRest(at: number): string | null {
    return at === 6 ? null : `rests on ${at}`;
  }
}

describe("a search", () => {
  it("goes through every state once and says so", () => {
    expect(search(new Strip(), 9)).toEqual({
      states: 7,
      transitions: 11,
      depth: 3,
      isExhausted: true,
      violation: null,
    });
  });

  it("stops where it was told to, and does not claim to have seen everything", () => {
    expect(search(new Strip(), 2)).toMatchObject({ states: 5, depth: 2, isExhausted: false });
  });

  it("finds a shortest way to what is wrong", () => {
    const home = 0;
    const strip = Object.assign(new Strip(5, home), { wrongAtRest: () => null });
    const { violation } = search(strip, 9);
    expect(violation).toEqual({ message: "on 5", trace: ["0+1", "1+2", "3+2"] });
  });

  it("finds what is wrong only after everything has calmed down", () => {
    const { violation } = search(new Strip(-1, 3), 9);
    const trace = ["calm", "0>", "1>", "2>"];
    expect(violation).toEqual({ message: "rests on 3", trace });
  });

  it("finds what goes wrong on the way to the rest", () => {
    const { violation } = search(new Strip(1), 9);
    expect(violation).toEqual({ message: "on 1", trace: ["calm", "0>"] });
  });

  it("finds a world that never comes to rest", () => {
    const restless = Object.assign(new Strip(), { calm: () => ({ label: "again", next: 0 }) });
    expect(search(restless, 9).violation?.message).toBe("The world never comes to rest.");
  });
});
