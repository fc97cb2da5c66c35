// `npm run bench -- [STORE] [QUESTION] [--quick]`: installs the peers, builds, and runs on plain Node.
import { root, run, runTool } from "./run.mjs";
import { build, install, installBench } from "./setup.mjs";

await install();
await build();
await installBench();
const compiled = await runTool("typescript/bin/tsc", ["--project", "tsconfig.bench.json"]);
if (compiled.code !== 0) process.exit(compiled.code);

const main = `${root}bench/build/bench/main.js`;
const args = process.argv.slice(2);
const { code } = await run(process.execPath, ["--expose-gc", main, ...args]);
process.exitCode = code;
