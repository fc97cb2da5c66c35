import { describe, expect, it } from "vitest";
import { slotOf } from "../redis-client/cluster-slot.js";
import { SingleServerLayout } from "./layout.js";

const layoutOf = (keyPrefix = "", prefix = "", namespace = "") =>
  new SingleServerLayout(namespace, prefix, { isCluster: true, keyPrefix });

const NAMES = [
  "a",
  "invoice:42",
  "{user}:1",
  "a}b",
  "{}x",
  "a{b",
  "}{",
  "{{x}}y",
  "holdfast:x",
  "é",
];

describe("the keys of a single server", () => {
  it.each(["", "app:", "{app}:", "a}"])(
    "are in one slot, with the client's prefix %j",
    (prefix) => {
      for (const namespace of ["", "n s"]) {
        for (const name of NAMES) {
          const keys = layoutOf(prefix, "", namespace).keysOf("lock", name);
          const slots = new Set(keys.map((key) => slotOf(prefix + key)));
          expect(slots.size, `${name}: ${keys.join(" ")}`).toBe(1);
        }
      }
    },
  );

  it("refuse a prefix of the client that would split them", () => {
    expect(() => layoutOf("app{").keysOf("lock", "a")).toThrow(/keyPrefix/);
  });

  it("begin with the prefix and the name, as other programs have it", () => {
    expect(layoutOf("", "mutex:").keysOf("lock", "m")[1]).toBe("mutex:m");
    const whole = layoutOf().keysOf("lock", "mutex:m");
    expect(layoutOf("", "mutex:").keysOf("lock", "m")).toEqual(whole);
  });

  it("give the name back, and no name of another space", () => {
    for (const name of NAMES) {
      const layout = layoutOf("app:", "p:");
      const [, , ballot] = layout.keysOf("once", name);
      expect(layout.nameOf("app:", "once", `app:${ballot}`)).toBe(name);
      expect(layout.nameOf("app:", "lock", `app:${ballot}`)).toBe(null);
    }
  });

  it("of different locks are different", () => {
    const all = ["lock", "election", "once"] as const;
    const keys = all.flatMap((space) => NAMES.flatMap((name) => layoutOf().keysOf(space, name)));
    expect(new Set(keys).size).toBe(keys.length);
  });
});
