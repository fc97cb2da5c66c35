import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { Fifo, type Place } from "./fifo.js";

type Step = { type: "push" } | { type: "shift" } | { type: "leave"; pick: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Step>({ type: "push" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ type: "shift" }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("leave" as const), pick: fc.nat(50) }) },
);

describe("Fifo", () => {
  it("is an array from which one may also leave in the middle", () => {
    check(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = new Fifo<number>();
        let places: Place<number>[] = [];
        steps.forEach((one, index) => {
          if (one.type === "push") places.push(line.push(index));
          else if (one.type === "shift") expect(line.shift()).toBe(places.shift()?.value);
          else {
            const place = places[one.pick % Math.max(1, places.length)];
            if (place) line.remove(place);
            places = places.filter((other) => other !== place);
          }
          expect([...line]).toEqual(places.map((place) => place.value));
          expect(line.size).toBe(places.length);
          expect(line.first).toBe(places[0]?.value);
        });
      }),
    );
  });

  it("is usable again after it was empty", () => {
    const line = new Fifo<string>();
    line.push("a");
    expect([line.shift(), line.shift(), line.size]).toEqual(["a", undefined, 0]);
    line.push("b");
    expect([...line]).toEqual(["b"]);
  });
});
