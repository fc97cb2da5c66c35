// `npm run lab -- [SUBJECT] [FAULT]`: builds, makes sure that the servers are installed, and runs
// the trials on plain Node.
import { root, run } from "./run.mjs";
import { ensureServers } from "./servers.mjs";
import { build, buildLab, install, installBench } from "./setup.mjs";

const args = process.argv.slice(2);
await install();
await build();
if (args.includes("--all") || args.some((arg) => arg.startsWith("peer"))) await installBench();
await ensureServers(["redis", "etcd", "zookeeper", "postgres"]);
await buildLab();
const file = `${root}lab/build/lab/main.js`;
const { code } = await run(process.execPath, [file, ...args]);
process.exitCode = code;
