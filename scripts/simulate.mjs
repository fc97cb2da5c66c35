// `npm run simulate -- ARGS`: builds the simulation when it is stale and runs it on plain Node.
import { pathToFileURL } from "node:url";
import { root } from "./run.mjs";
import { buildSimulation, install } from "./setup.mjs";

await install();
await buildSimulation();

const main = `${root}build/simulation/main.js`;
process.argv[1] = main;
await import(pathToFileURL(main).href);
