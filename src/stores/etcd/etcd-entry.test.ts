import { expect, it } from "vitest";
import { EntryNumbers, nameOf } from "./etcd-entry.js";

it("uses a number again when its entry is gone for certain", () => {
  const numbers = new EntryNumbers();
  const first = numbers.take("a");
  const second = numbers.take("a");
  expect(nameOf(first)).not.toBe(nameOf(second));
  numbers.giveBack(first, true);
  expect(nameOf(numbers.take("a"))).toBe(nameOf(first));
  expect(nameOf(numbers.take("b"))).toBe(nameOf(first));
});

it("uses no number again once a number may still be in a request", () => {
  const numbers = new EntryNumbers();
  const taken = [numbers.take("a"), numbers.take("a"), numbers.take("b")] as const;
  numbers.giveBack(taken[0], false);
  for (const one of taken.slice(1)) numbers.giveBack(one, true);
  const later = [numbers.take("a"), numbers.take("a"), numbers.take("b"), numbers.take("b")];
  const before = new Set(taken.map(nameOf));
  expect(later.filter((one) => before.has(nameOf(one)))).toEqual([]);
});
