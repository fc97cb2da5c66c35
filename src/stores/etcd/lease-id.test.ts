import { expect, it } from "vitest";
import { leaseIdOf, leaseNumber } from "./lease-id.js";

it.each([
  ["ff", "255"],
  ["-8000000000000000", "-9223372036854775808"],
])("the lease id %s has the number %s", (id, number) => {
  expect(leaseNumber(id)).toBe(number);
  expect(leaseIdOf({ lease: number })).toBe(id);
});
