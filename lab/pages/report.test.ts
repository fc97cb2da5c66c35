import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { faults } from "../faults/all.js";
import { cellsOf } from "../matrix.js";
import { subjects } from "../subjects/all.js";
import { historiesIn, isAsExpected } from "./kept-histories.js";
import { fileOf } from "./matrix-page.js";
import { report } from "./report.js";

const PROJECT = join(import.meta.dirname, "..", "..");
const FOLDER = join(PROJECT, "docs", "lab");
const MOST_BYTES = 3_000_000;

const histories = historiesIn(FOLDER);
const files = readdirSync(FOLDER);
const ladderFiles = readdirSync(join(PROJECT, "docs", "ladder"));
const page = readFileSync(join(PROJECT, "docs/lab.md"), "utf8");
const cells = cellsOf(subjects, faults);

describe("the pages of the lab", () => {
  it("are what the histories, the programs and the prices give", () => {
    const stale = [...report(PROJECT, histories)].filter(([path, text]) => {
      return readFileSync(join(PROJECT, path), "utf8") !== text;
    });
    // After a change of the lab: npm run lab:report.
    expect(stale.map(([path]) => path)).toEqual([]);
  });

  it("have a history for each cell of the ladder and of Holdfast", () => {
    const kept = new Set(histories.map(fileOf));
    const names = cells
      .filter(({ subject }) => ["ladder", "holdfast"].includes(subject.family))
      .map(({ subject, fault }) => fileOf({ subject: subject.id, fault: fault.id }));
    expect(names.length).toBeGreaterThan(150);
    expect(names.filter((name) => !kept.has(name))).toEqual([]);
  });

  it("have no history of a cell that is no more, and no verdict that is not expected", () => {
    const known = new Set(
      cells.map(({ subject, fault }) => fileOf({ subject: subject.id, fault: fault.id })),
    );
    const wrong = histories.filter((one) => !known.has(fileOf(one)) || !isAsExpected(one));
    expect(wrong.map(fileOf)).toEqual([]);
  });

  it("link each cell to its picture and its history, and have its command", () => {
    for (const history of histories) {
      const { subject, fault } = history;
      const name = fileOf(history);
      expect(page.split(`](lab/${name}.svg)`)).toHaveLength(3);
      expect(page).toContain(`[history](lab/${name}.json)`);
      expect(page).toContain(`\`npm run lab -- ${subject} ${fault}\``);
    }
  });

  it("are small, and have no picture of a trial that is no more", () => {
    const names = histories.map(fileOf);
    const wanted = names.flatMap((name) => [`${name}.json`, `${name}.svg`]);
    expect(files.filter((file) => !wanted.includes(file))).toEqual([]);
    const ladder = readFileSync(join(PROJECT, "docs/ladder.md"), "utf8");
    expect(ladderFiles.filter((file) => !ladder.includes(`](ladder/${file})`))).toEqual([]);
    const bytes = files.map((file) => statSync(join(FOLDER, file)).size);
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(MOST_BYTES);
  });
});
