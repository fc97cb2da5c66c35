import { expect, it } from "vitest";
import { crowded, killedHolder, stoppedHolder } from "../timeline/example-histories.js";
import { type Matrix, matrixPage, shortVerdict } from "./matrix-page.js";

const matrix: Matrix = {
  subjects: [
    { id: "rung-1", title: "SETNX | DEL", family: "ladder" },
    { id: "rung-2", title: "SET NX PX", family: "ladder" },
    { id: "holdfast-redis", title: "redis", family: "holdfast" },
    { id: "untested", title: "a peer", family: "peer" },
  ],
  faults: [
    { id: "killed-holder", title: "the holder is killed" },
    { id: "stopped-holder", title: "the holder is stopped" },
    { id: "failover", title: "failover" },
  ],
  histories: [stoppedHolder, killedHolder, crowded],
  agreement: {
    from: "2026-11-16T10:00:00.000Z",
    to: "2026-11-17T10:00:00.000Z",
    verdicts: { "rung-1 killed-holder": { stuck: 20 }, "rung-2 late": { held: 18, stuck: 2 } },
  },
  exemptionOf: (subject, fault) =>
    subject === "rung-1" && fault === "failover" ? "it has no replica" : null,
};

it("has a table for each family with trials, and a cell for each trial", () => {
  const page = matrixPage(matrix);
  expect(page).toContain("| fault | SETNX \\| DEL | SET NX PX |");
  expect(page).toContain("| the holder is killed | ✗ stuck ∞ |  |");
  expect(page).toContain("| ✗ two held 3.1 s |");
  expect(page).toContain("| ✓ told in time |");
  expect(page).toContain("| failover | – |  |");
  expect(page).toContain("- failover: it has no replica");
  expect(page).not.toContain("a peer");
});

it("says how many runs agree, of each family", () => {
  const page = matrixPage(matrix);
  expect(page).toContain(
    "The ladder: 2 trials, each at least 20 times, from 2026-11-16 to 2026-11-17; in 1\nof them",
  );
  expect(page).toContain("- rung-2 late: 18 × held, 2 × stuck");
  expect(page).not.toContain("Holdfast: ");
});

it("names the row of a store's page for each of its exceptions", () => {
  expect(matrixPage(matrix)).toContain(
    "| redis | failover | told late | [redis](stores/redis.md#what-survives-what): failover, ",
  );
});

it("has the versions and the command of each trial", () => {
  const page = matrixPage(matrix);
  expect(page).toContain("node 20.20.2, redis 7.0.15, ioredis 6.0.0; ttl 4.0 s; taken 2026-11-17.");
  for (const { command } of matrix.histories) expect(page).toContain(`\`${command}\``);
});

it("has as many cells in each row as its head", () => {
  const tables = matrixPage(matrix)
    .split("\n\n")
    .filter((part) => part.startsWith("|"));
  for (const rows of tables.map((part) => part.trim().split("\n"))) {
    const counts = rows.map((row) => row.match(/(?<!\\)\|/g)?.length);
    expect(new Set(counts).size).toBe(1);
  }
  expect(tables.length).toBe(7);
});

it.each([
  [{ kind: "held", text: "" }, "✓ held"],
  [{ kind: "two held", ms: 0, text: "" }, "✗ two held"],
  [{ kind: "ghost", ms: 950, text: "" }, "✗ ghost 950 ms"],
  [{ kind: "stuck", ms: null, text: "" }, "✗ stuck ∞"],
] as const)("says %j in few words", (verdict, words) => {
  expect(shortVerdict(verdict)).toBe(words);
});
