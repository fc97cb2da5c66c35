// `npm run bench -- [STORE] [QUESTION] [--quick]`: installs the peers, builds, and runs on plain
// Node. With `--report` (`npm run bench:report`) it writes docs/benchmarks.md from the results
// instead.
import { root, run, runTool } from "./run.mjs";
import { build, install, installBench } from "./setup.mjs";

await install();
await build();
await installBench();
const compiled = await runTool("typescript/bin/tsc", ["--project", "tsconfig.bench.json"]);
if (compiled.code !== 0) process.exit(compiled.code);

const [first, ...rest] = process.argv.slice(2);
const isReport = first === "--report";
const main = `${root}bench/build/bench/${isReport ? "report" : "main"}.js`;
const args = isReport || first === undefined ? rest : [first, ...rest];
const { code } = await run(process.execPath, ["--expose-gc", main, ...args]);
process.exitCode = code;
