import { expect, it } from "vitest";
import { Pace } from "./lateness.js";

it("leases get longer after late trials, and shorter after many that were in time", () => {
  const pace = new Pace();
  expect(pace.stretches()).toEqual([1, 2, 4, 4, 4]);
  pace.note(2);
  expect(pace.stretches()).toEqual([4, 4, 4]);
  for (let trial = 0; trial < 5; trial += 1) pace.note(0);
  expect(pace.stretches()).toEqual([2, 4, 4, 4]);
  pace.note(3);
  expect(pace.stretches()).toEqual([4, 4, 4]);
  for (let trial = 0; trial < 20; trial += 1) pace.note(0);
  expect(pace.stretches()).toEqual([1, 2, 4, 4, 4]);
});
