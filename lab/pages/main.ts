/** `npm run lab:report [-- --take]`: docs/lab.md, the ladder in both languages, pictures. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { agreementOf } from "../agreement.js";
import { sightingsIn } from "../run-log.js";
import { HISTORIES, PROJECT, RECORDED, RUNS } from "../versions.js";
import { historiesIn, record, recordedIn } from "./kept-histories.js";
import { fileOf } from "./matrix-page.js";
import { report } from "./report.js";

const { values } = parseArgs({ options: { take: { type: "boolean", default: false } } });

if (values.take) {
  const left = record(historiesIn(HISTORIES), RECORDED);
  for (const history of left) {
    process.stderr.write(
      `left out, not as expected: ${fileOf(history)}, ${history.verdict.text}\n`,
    );
  }
  if (left.length > 0) process.exitCode = 1;
  const sightings = sightingsIn(RUNS);
  if (sightings.length > 0) {
    const agreement = JSON.stringify(agreementOf(sightings), null, 2);
    writeFileSync(join(PROJECT, "lab", "agreement.json"), `${agreement}\n`);
  }
}

const histories = recordedIn(RECORDED);
for (const [path, text] of report(PROJECT, histories)) {
  const file = join(PROJECT, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
process.stdout.write(`docs/lab.md and the ladder: ${histories.length} trials\n`);
