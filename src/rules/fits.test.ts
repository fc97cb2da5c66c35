import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check } from "../../test/fixtures/property.js";
import { fits, joined, NO_LIMIT, type Request, VACANT } from "./fits.js";

const request: fc.Arbitrary<Request> = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Request>({ mode: "exclusive", weight: 1, limit: NO_LIMIT }) },
  { weight: 2, arbitrary: fc.constant<Request>({ mode: "shared", weight: 1, limit: NO_LIMIT }) },
  {
    weight: 4,
    arbitrary: fc.record({
      mode: fc.constant("shared" as const),
      weight: fc.integer({ min: 1, max: 6 }),
      limit: fc.integer({ min: 1, max: 9 }),
    }),
  },
);

/** The rule as it is written down, over the whole set at once. */
function isCompatible(holders: readonly Request[]): boolean {
  if (holders.some((holder) => holder.mode === "exclusive")) return holders.length === 1;
  const weight = holders.reduce((sum, holder) => sum + holder.weight, 0);
  return weight <= Math.min(...holders.map((holder) => holder.limit));
}

describe("fits", () => {
  it("admits a request exactly where the holders stay compatible with it", () => {
    check(
      fc.property(fc.array(request, { maxLength: 12 }), (requests) => {
        const holders: Request[] = [];
        let held = VACANT;
        for (const next of requests) {
          expect(fits(held, next)).toBe(isCompatible([...holders, next]));
          if (!fits(held, next)) continue;
          holders.push(next);
          held = joined(held, next);
        }
      }),
      500,
    );
  });

  it("holds the newcomer to the least limit of those who are there, and them to its own", () => {
    const wide: Request = { mode: "shared", weight: 1, limit: 10 };
    const narrow: Request = { mode: "shared", weight: 1, limit: 2 };
    const two = joined(joined(VACANT, wide), wide);
    expect(fits(two, wide)).toBe(true);
    expect(fits(two, narrow)).toBe(false);
    const mixed = joined(joined(VACANT, wide), narrow);
    expect(fits(mixed, wide)).toBe(false);
  });

  it("never admits more than the limit, even to an empty lock", () => {
    expect(fits(VACANT, { mode: "shared", weight: 3, limit: 2 })).toBe(false);
    expect(fits(VACANT, { mode: "shared", weight: 2, limit: 2 })).toBe(true);
  });

  it("keeps readers and a writer apart, in both orders", () => {
    const reader: Request = { mode: "shared", weight: 1, limit: NO_LIMIT };
    const writer: Request = { mode: "exclusive", weight: 1, limit: NO_LIMIT };
    expect(fits(joined(VACANT, reader), writer)).toBe(false);
    expect(fits(joined(VACANT, writer), reader)).toBe(false);
    expect(fits(joined(VACANT, reader), reader)).toBe(true);
  });
});
