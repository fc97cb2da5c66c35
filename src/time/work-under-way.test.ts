import { expect, it } from "vitest";
import { WorkUnderWay } from "./work-under-way.js";

it("settles when all work has ended, in success or failure", async () => {
  const works = new WorkUnderWay();
  const ends: (() => void)[] = [];
  void works.add(new Promise<void>((resolve) => ends.push(resolve)));
  const failed = works.add(new Promise((_, reject) => ends.push(() => reject(new Error("no")))));
  let isSettled = false;
  const settled = works.settled().then(() => {
    isSettled = true;
  });
  ends[0]?.();
  await new Promise(setImmediate);
  expect({ isSettled, size: works.size }).toEqual({ isSettled: false, size: 1 });
  ends[1]?.();
  await expect(failed).rejects.toThrow("no");
  await settled;
  expect(works.size).toBe(0);
});
