// The public API as text, a report for each entry point, so that every change shows in a diff; and
// docs/api.md, the same for users. `npm run api` writes them; without --write a difference is an
// error.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CompilerState,
  Extractor,
  ExtractorConfig,
  ExtractorLogLevel,
} from "@microsoft/api-extractor";
import { apiPage } from "./api-page.mjs";
import { root } from "./run.mjs";
import { build, install } from "./setup.mjs";

const write = process.argv.includes("--write");
const quiet = { default: { logLevel: ExtractorLogLevel.None } };

await install();
await build();

const { exports } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
const temporary = mkdtempSync(join(tmpdir(), "holdfast-api-"));
process.on("exit", () => rmSync(temporary, { recursive: true, force: true }));
mkdirSync(`${root}api`, { recursive: true });
/** @type {string[]} */
const entries = Object.keys(exports).filter((entry) => exports[entry].types);
// One program has all entry points: reading the types that they share takes most of the time.
const compilerState = CompilerState.create(configOf("."), {
  additionalEntryPoints: entries.map(typesOf),
});
const changed = entries.filter((entry) => !report(entry));

if (changed.length > 0 && !write) {
  console.error(`The public API of ${changed.join(", ")} differs from its report in api/.`);
  console.error("When that is intended: npm run api, then review and commit the difference.");
  process.exitCode = 1;
}

const page = apiPage(entries.map((entry) => [entry.replace(".", "holdfast"), modelOf(entry)]));
if (write) writeFileSync(`${root}docs/api.md`, page);
else if (readFileSync(`${root}docs/api.md`, "utf8") !== page) {
  console.error("docs/api.md is not as the types and their comments give it: npm run api.");
  process.exitCode = 1;
}

const undocumented = entries.flatMap(undocumentedIn);
if (undocumented.length > 0) {
  console.error("Every public member has a sentence for its users. These have none:");
  console.error(undocumented.join("\n"));
  process.exitCode = 1;
}

/** @param {string} entry */
function fileOf(entry) {
  return `${entry === "." ? "index" : entry.slice(2).replaceAll("/", "-")}.api.md`;
}

/**
 * The model of an entry point, with all comments.
 *
 * @param {string} entry
 */
function modelOf(entry) {
  return join(temporary, fileOf(entry).replace(/md$/, "json"));
}

/**
 * The members of an entry point that have no comment, as the report shows them.
 *
 * @param {string} entry
 */
function undocumentedIn(entry) {
  const lines = readFileSync(`${root}api/${fileOf(entry)}`, "utf8").split("\n");
  return lines.flatMap((line, index) => {
    return line.includes("(undocumented)") ? [`  ${entry}: ${lines[index + 1]?.trim()}`] : [];
  });
}

/** @param {string} entry */
function typesOf(entry) {
  return join(root, exports[entry].types);
}

/** @param {string} entry */
function configOf(entry) {
  return ExtractorConfig.prepare({
    packageJsonFullPath: `${root}package.json`,
    configObjectFullPath: undefined,
    configObject: {
      projectFolder: root,
      mainEntryPointFilePath: typesOf(entry),
      newlineKind: "lf",
      // api-extractor brings an older compiler: it reads the built declarations, not the sources.
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: "es2023",
            lib: ["es2023", "esnext.disposable"],
            module: "nodenext",
            types: ["node"],
            strict: true,
            skipLibCheck: true,
          },
          files: [typesOf(entry)],
        },
      },
      apiReport: {
        enabled: true,
        reportFileName: fileOf(entry),
        reportFolder: `${root}api`,
        reportTempFolder: temporary,
      },
      docModel: { enabled: true, apiJsonFilePath: modelOf(entry) },
      messages: { extractorMessageReporting: quiet, tsdocMessageReporting: quiet },
    },
  });
}

/**
 * Writes or compares the report of one entry point.
 *
 * @param {string} entry
 * @returns {boolean} whether it is as it was
 */
function report(entry) {
  return !Extractor.invoke(configOf(entry), {
    compilerState,
    localBuild: write,
    messageCallback: (message) => {
      if (message.messageId.startsWith("console-")) message.handled = true;
    },
  }).apiReportChanged;
}
