import { describe, expect, it } from "vitest";
import { assert, present } from "./assert.js";
import { HoldfastError, InternalError } from "./index.js";

describe("an assertion", () => {
  it("says nothing while its rule holds", () => {
    assert(true, "one is one");
    expect(present(0, "a number is there")).toBe(0);
    expect(present("", "a text is there")).toBe("");
  });

  it("throws an internal error that names the broken rule", () => {
    const broken = (): void => assert(false, "a deadline is never after the expiry");
    expect(broken).toThrow(InternalError);
    expect(broken).toThrow(HoldfastError);
    expect(broken).toThrow(/broken: a deadline is never after the expiry\. .* report it/);
    for (const missing of [null, undefined]) {
      expect(() => present(missing, "the member is there")).toThrow(/the member is there/);
    }
    expect(new InternalError("r")).toMatchObject({ code: "HF_INTERNAL", rule: "r" });
  });
});
