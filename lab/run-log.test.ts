import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { faults } from "./faults/all.js";
import type { History } from "./history.js";
import { type Cell, cellsOf } from "./matrix.js";
import { RunLog } from "./run-log.js";
import { subjects } from "./subjects/all.js";
import { historyOf, killedHolder } from "./timeline/example-histories.js";

const cells = cellsOf(subjects, faults).slice(0, 2);
const [first, second] = cells as [Cell, Cell];

const historyFor = ({ subject, fault }: Cell): History =>
  historyOf({ ...killedHolder, subject: subject.id, fault: fault.id });

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-run-log-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("goes on where runs were cut, even in the middle of a line", () => {
  const file = join(folder, "runs.jsonl");
  const cut = new RunLog(file, { resumes: false });
  expect(cut.missing(cells, 2)).toEqual([first, second, first, second]);
  cut.add(historyFor(first));
  cut.add(historyFor(second));
  cut.add(historyFor(first));
  appendFileSync(file, '{"subject":"ru');

  const resumed = new RunLog(file, { resumes: true });
  expect(resumed.sightings).toEqual(cut.sightings);
  expect(resumed.missing(cells, 2)).toEqual([second]);
  expect(resumed.missing(cells, 3)).toEqual([second, first, second]);
  resumed.add(historyFor(second));
  expect(new RunLog(file, { resumes: true }).missing(cells, 2)).toEqual([]);
});

it("begins anew unless it resumes", () => {
  const file = join(folder, "runs.jsonl");
  new RunLog(file, { resumes: false }).add(historyFor(first));
  expect(new RunLog(file, { resumes: false }).missing(cells, 1)).toEqual([first, second]);
});
