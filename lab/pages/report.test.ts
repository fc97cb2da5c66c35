import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { faults } from "../faults/all.js";
import { cellsOf } from "../matrix.js";
import { subjects } from "../subjects/all.js";
import { isAsExpected, recordedIn } from "./kept-histories.js";
import { fileOf } from "./matrix-page.js";
import { report } from "./report.js";

const PROJECT = join(import.meta.dirname, "..", "..");

const histories = recordedIn(join(PROJECT, "lab", "histories.jsonl"));
const ladderFiles = readdirSync(join(PROJECT, "docs", "ladder"));
const page = readFileSync(join(PROJECT, "docs/lab.md"), "utf8");
const cells = cellsOf(subjects, faults);

describe("the pages of the lab", () => {
  it("are what the histories, the programs and the prices give", () => {
    const stale = [...report(PROJECT, histories)].filter(([path, text]) => {
      return path.startsWith("docs/") && readFileSync(join(PROJECT, path), "utf8") !== text;
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

  it("have the command of each trial", () => {
    for (const { subject, fault } of histories) {
      expect(page).toContain(`\`npm run lab -- ${subject} ${fault}\``);
    }
  });

  it("have no picture that the ladder does not show", () => {
    const ladder = readFileSync(join(PROJECT, "docs/ladder.md"), "utf8");
    expect(ladderFiles.filter((file) => !ladder.includes(`](ladder/${file})`))).toEqual([]);
  });
});
