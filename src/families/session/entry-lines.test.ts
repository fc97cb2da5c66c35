import { expect, it } from "vitest";
import { EntryLines, type LinePlace } from "./entry-lines.js";

const lock = { space: "lock", name: "m" } as const;

/** Joins a line, and logs its turn. */
function join(lines: EntryLines, log: string[], title: string): LinePlace {
  const position = lines.join(lock);
  if (position.isFirst) log.push(title);
  else void position.turn().then(() => log.push(position.isFirst ? title : `${title} left`));
  return position;
}

it("gives turns one after the other, in the order of the calls", async () => {
  const [lines, log] = [new EntryLines(), [] as string[]];
  const positions = ["a", "b", "c"].map((title) => join(lines, log, title));
  for (const position of positions) {
    await Promise.resolve();
    log.push("answer");
    position.leave();
    position.leave();
  }
  await Promise.resolve();
  expect(log).toEqual(["a", "answer", "b", "answer", "c", "answer"]);
});

it("passes over a call that is not wanted any more, and ends its wait", async () => {
  const [lines, log] = [new EntryLines(), [] as string[]];
  const [a, b] = ["a", "b", "c"].map((title) => join(lines, log, title));
  b?.leave();
  await Promise.resolve();
  a?.leave();
  await Promise.resolve();
  expect(log).toEqual(["a", "b left", "c"]);
});

it("keeps no line that is empty, and one for each queue", () => {
  const lines = new EntryLines();
  const first = lines.join(lock);
  expect(lines.join({ space: "once", name: "m" }).isFirst).toBe(true);
  first.onAnswered(5);
  first.leave();
  expect(lines.join(lock)).toMatchObject({ isFirst: true, answeredMs: Number.NEGATIVE_INFINITY });
});
