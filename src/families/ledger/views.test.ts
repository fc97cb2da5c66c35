import { describe, expect, it } from "vitest";
import { NO_LIMIT } from "../../rules/fits.js";
import type { HolderEntry } from "../../rules/ledger-command.js";
import { holderView, lockView, markView } from "./views.js";

const entry: HolderEntry = {
  token: 1_763_000_000_000_001,
  span: 4,
  mode: "exclusive",
  weight: 1,
  limit: NO_LIMIT,
  meta: '{"host":"h"}',
  heldUs: 1_500,
  remainingUs: 28_500_250,
};

describe("a view", () => {
  it("speaks tokens, milliseconds and objects", () => {
    expect(holderView(entry)).toEqual({
      token: 1_763_000_000_000_001n,
      mode: "exclusive",
      weight: 1,
      limit: null,
      meta: { host: "h" },
      heldMs: 1.5,
      remainingMs: 28_500.25,
    });
  });

  it("of a lock has its name and space, and everybody there", () => {
    const waiter = { mode: "shared", weight: 2, limit: 5, meta: "{}", waitedUs: 2_000 } as const;
    const mark = { token: 7, meta: '{"by":"a"}', remainingUs: 1_000 };
    expect(lockView("o:a:b", { type: "view", holders: [entry], waiters: [waiter], mark })).toEqual({
      space: "once",
      name: "a:b",
      holders: [holderView(entry)],
      waiters: [{ mode: "shared", weight: 2, limit: 5, meta: {}, waitedMs: 2 }],
      mark: { token: 7n, meta: { by: "a" }, remainingMs: 1 },
    });
  });

  it.each(["", "not json", "[1]", "null", '"text"', "{"])("shows what is no object: %s", (text) => {
    expect(markView({ token: 1, meta: text, remainingUs: 0 }).meta).toEqual({ text });
  });
});
