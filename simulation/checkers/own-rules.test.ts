import { describe, expect, it } from "vitest";
import { checkOwnRules } from "./own-rules.js";

const refused = (reason: string) => ({ type: "refused", lease: "p/0", reason, atMs: 5 }) as const;

describe("own rules", () => {
  it("lets a call end for any other reason", () => {
    expect(checkOwnRules([refused("HF_STORE"), refused("busy")])).toEqual([]);
  });

  it("finds a call that an assertion ended", () => {
    expect(checkOwnRules([refused("HF_INTERNAL")])).toMatchObject([{ checker: "own rules" }]);
  });
});
