/** All pages and pictures that `npm run lab:report` writes, by their path in the project. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Agreement, scoreOf } from "../agreement.js";
import { exceptions } from "../expected.js";
import { faults } from "../faults/all.js";
import type { History } from "../history.js";
import { chinese } from "../languages/chinese.js";
import { english } from "../languages/language.js";
import { cellsOf, exemptionOf } from "../matrix.js";
import { subjects } from "../subjects/all.js";
import { isGood } from "../timeline/svg.js";
import { type Remarks, timeline } from "../timeline/timeline.js";
import { cureOf } from "./exhibit.js";
import { type Edition, filledIn, functionIn, type Sources } from "./ladder-page.js";
import { fileOf, matrixPage } from "./matrix-page.js";

export function report(project: string, histories: readonly History[]): Map<string, string> {
  const read = (...path: readonly string[]): string => {
    return readFileSync(join(project, ...path), "utf8");
  };
  const agreement: Agreement = JSON.parse(read("lab", "agreement.json"));
  const matrix = matrixPage({
    agreement,
    subjects,
    faults,
    histories,
    exemptionOf(subjectId, faultId) {
      const subject = subjects.find(({ id }) => id === subjectId);
      const fault = faults.find(({ id }) => id === faultId);
      return subject && fault ? exemptionOf({ subject, fault }) : null;
    },
  });
  const shown = new Set<History>();
  const sources: Sources = {
    way: (name) => functionIn(read("lab", "prices", "ways-to-wait.ts"), name),
    program: (id) => read("lab", "ladder", `${id}.ts`),
    history(subject, fault) {
      const found = histories.find((one) => one.subject === subject && one.fault === fault);
      if (!found) throw new Error(`No history of ${subject} and ${fault} is recorded.`);
      shown.add(found);
      return found;
    },
    prices: JSON.parse(read("lab", "prices", "results.json")),
  };
  const filled = (text: string, edition: Edition): string =>
    filledIn(read("lab", "pages", text), sources, edition);
  const ladder = filled("ladder.md", { language: english, pictures: "ladder" });
  const chineseLadder = filled("ladder.zh.md", { language: chinese, pictures: "../ladder" });
  const cells = cellsOf(subjects, faults);
  const pictures = (folder: string, some: Iterable<History>) =>
    [...some].map((one) => {
      const remarks = {
        ...agreementOn(one, agreement),
        ...cureFor(one, cells),
        ...exceptionOf(one),
      };
      return [`${folder}/${fileOf(one)}.svg`, timeline(one, remarks)] as const;
    });
  return new Map([
    ["docs/lab.md", matrix],
    ["docs/ladder.md", ladder],
    ["docs/zh/ladder.md", chineseLadder],
    ...pictures("lab/build/pictures", histories),
    ...pictures("docs/ladder", shown),
  ]);
}

function agreementOn(history: History, agreement: Agreement): Remarks {
  const score = scoreOf(agreement, history);
  if (!score) return {};
  const same = score.counts[history.verdict.kind] ?? 0;
  return { agreement: `the same verdict in ${same} of ${score.runs} runs` };
}

function cureFor(history: History, cells: Parameters<typeof cureOf>[1]): Remarks {
  const cure = cureOf(history, cells);
  return cure ? { cure: cure.title } : {};
}

/** A failure that the page of the store documents. */
function exceptionOf({ subject, fault, verdict }: History): Remarks {
  const exception = exceptions[subject]?.[fault];
  return exception && !isGood(verdict.kind) ? { exception: plain(exception.event) } : {};
}

/** Without the marks of Markdown. */
const plain = (text: string): string => text.replaceAll("`", "");
