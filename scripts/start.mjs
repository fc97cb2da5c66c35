// `npm start`: sets up, then runs the command line in this very process, so that arguments, signals
// and exit code are its own.
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { root } from "./run.mjs";
import { build, install } from "./setup.mjs";

await install();
await build();

const main = `${root}dist/cli/main.js`;
if (existsSync(main)) {
  process.argv[1] = main;
  await import(pathToFileURL(main).href);
} else {
  console.log(`Holdfast is ready: a library for distributed locks.

  import { Holdfast } from "holdfast";
  import { memoryStore } from "holdfast/memory";

  const locks = new Holdfast(memoryStore());
  await locks.mutex("invoice:42").run(async (lease) => console.log(lease.token));

Next:
  npm test            every test
  npm run check       types, lint, unit tests and packaging, without servers
  npm run simulate    the deterministic simulation`);
}
