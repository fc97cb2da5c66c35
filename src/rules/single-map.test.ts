import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { SingleMap } from "./single-map.js";

const step = fc.record({
  type: fc.constantFrom("set", "delete"),
  key: fc.integer({ min: 0, max: 3 }),
});

it("has the entries that a Map has after the same steps", () => {
  const property = fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const [ours, plain] = [new SingleMap<number, object>(), new Map<number, object>()];
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

/** The bytes that reach the old space while ten entries are there, of all that come and go. */
function promotedPart(map: Pick<SingleMap<number, object>, "set" | "delete">): number {
  const [live, batches, batch, words] = [10, 50, 500, 128];
  setFlagsFromString("--expose-gc");
  const collect: (how?: { type: "minor" }) => void = runInNewContext("gc");
  const oldBytes = (): number =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")
      ?.space_used_size ?? 0;
  let [key, promoted] = [0, 0];
  const pass = (count: number): void => {
    for (const end = key + count; key < end; key += 1) {
      map.set(key, new Array(words).fill(key));
      map.delete(key - live);
    }
  };
  pass(batch);
  collect();
  for (let at = 0; at < batches; at += 1) {
    const before = oldBytes();
    pass(batch);
    collect({ type: "minor" });
    promoted += Math.max(0, oldBytes() - before);
  }
  return promoted / (batches * batch * words * 8);
}

it("does not keep deleted values alive until a full collection", () => {
  expect(promotedPart(new SingleMap())).toBeLessThan(0.2);
});
