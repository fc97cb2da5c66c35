// `npm run lab:report` writes docs/lab.md, the ladder in both languages and their pictures from the
// histories of the lab; with `--take` it first takes over those of the last runs. `npm run
// lab:prices` measures the prices of the ladder.
import { root, run } from "./run.mjs";
import { ensureServers } from "./servers.mjs";
import { build, buildLab, install } from "./setup.mjs";

const [page, ...args] = process.argv.slice(2);
const isPrices = page === "prices";

await install();
await build();
if (isPrices) await ensureServers(["redis", "etcd"]);
await buildLab();
const file = `${root}lab/build/lab/${isPrices ? "prices/main" : "pages/main"}.js`;
const { code } = await run(process.execPath, [file, ...args]);
process.exitCode = code;
