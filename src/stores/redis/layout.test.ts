import { describe, expect, it } from "vitest";
import { slotOf } from "../redis-client/cluster-slot.js";
import { Layout, patternOf } from "./layout.js";

describe("slots", () => {
  it("are those of Redis Cluster", () => {
    expect(slotOf("123456789")).toBe(12_739);
    expect(slotOf("foo{bar}baz")).toBe(slotOf("bar"));
    expect(slotOf("foo{}{bar}")).toBe(8363);
  });
});

describe("a namespace", () => {
  it("cannot name the keys of another namespace", () => {
    const forged = new Layout("a}:l:x", false, "", 0);
    expect(forged.registerOf("")).toBe("{hf:a%7D:l:x}");
    expect(forged.channelPrefix).toBe("{hf:a%7D:l:x}@0:");
  });

  it("spreads its shards evenly over the slots of a Cluster", () => {
    const layout = new Layout("any", true, "", 0);
    const slots = layout.shards.map((shard) => slotOf(layout.registerOf(shard)));
    const parts = slots.map((slot) => Math.floor(slot / 256));
    expect(parts).toEqual(Array.from({ length: 64 }, (_, part) => part));
  });

  it("keeps all keys of a name in one slot, with or without a prefix", () => {
    for (const prefix of ["", "app:", "{app}:"]) {
      const layout = new Layout("n", true, prefix, 0);
      const register = prefix + layout.registerOf(layout.shardOf("l:a{b}c"));
      expect(slotOf(`${register}:l:a{b}c`)).toBe(slotOf(register));
    }
  });

  it("lists by a prefix whose characters stand for themselves", () => {
    expect(patternOf("l:[x]?")).toBe("l:\\[x\\]\\?*");
  });
});
