// `npm run bench -- [STORE] [QUESTION] [--quick]`: installs the peers, builds, and runs on plain
// Node. With `--report` (`npm run bench:report`) it writes docs/benchmarks.md from the results
// instead; with `--compare FOLDER` (`npm run bench:compare`) it compares two builds.
import { root, run, runTool } from "./run.mjs";
import { build, install, installBench } from "./setup.mjs";

await install();
await build();
await installBench();
const compiled = await runTool("typescript/bin/tsc", ["--project", "tsconfig.bench.json"]);
if (compiled.code !== 0) process.exit(compiled.code);

const MAINS = new Map([
  ["--report", "report"],
  ["--compare", "compare/main"],
]);
const [first = "", ...rest] = process.argv.slice(2);
const main = MAINS.get(first);
const args = main || first === "" ? rest : [first, ...rest];
const file = `${root}bench/build/bench/${main ?? "main"}.js`;
const { code } = await run(process.execPath, ["--expose-gc", file, ...args]);
process.exitCode = code;
