import { describe, expect, it } from "vitest";
import { nearestWord } from "./nearest-word.js";

const OPTIONS = ["ttlMs", "waitMs", "graceMs", "storeTimeoutMs", "namespace", "renew", "replicas"];

describe("the nearest word", () => {
  it.each([
    ["ttl", "ttlMs"],
    ["TTLms", "ttlMs"],
    ["wait", "waitMs"],
    ["timeout", "storeTimeoutMs"],
    ["namspace", "namespace"],
    ["nmaespace", "namespace"],
    ["nameSpaces", "namespace"],
    ["renwe", "renew"],
    ["replica", "replicas"],
    ["waitMS", "waitMs"],
  ])("of %s is %s", (word, nearest) => {
    expect(nearestWord(word, OPTIONS)).toBe(nearest);
  });

  it.each(["file", "xx", "", "retryCount", "db"])("of %s is none of them", (word) => {
    expect(nearestWord(word, OPTIONS)).toBeNull();
  });

  it("is the one with the fewest wrong letters", () => {
    expect(nearestWord("cort", ["cart", "court", "port", "cord", "cort"])).toBe("cort");
    expect(nearestWord("namespcae", ["namespaces", "namespace"])).toBe("namespace");
  });
});
