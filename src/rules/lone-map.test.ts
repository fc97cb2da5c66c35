import fc from "fast-check";
import { expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { LoneMap } from "./lone-map.js";

const step = fc.record({
  type: fc.constantFrom("set", "delete"),
  key: fc.integer({ min: 0, max: 3 }),
});

it("has the entries that a Map has after the same steps", () => {
  const property = fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const [ours, plain] = [new LoneMap<number, object>(), new Map<number, object>()];
    for (const [index, { type, key }] of steps.entries()) {
      if (type === "delete") {
        ours.delete(key);
        plain.delete(key);
      } else {
        const value = { index };
        ours.set(key, value);
        plain.set(key, value);
      }
      expect(ours.size).toBe(plain.size);
      for (const each of [0, 1, 2, 3]) expect(ours.get(each)).toBe(plain.get(each));
      expect(new Set(ours.values())).toEqual(new Set(plain.values()));
    }
  });
  check(property, 300);
});
