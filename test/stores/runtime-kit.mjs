// Runs the conformance kit of the installed package on the store of a URL, in any runtime, and
// prints the outcome of every case as JSON: `node runtime-kit.mjs URL [TTL_MS] [WORDS]`. TTL_MS is
// that of the shortest leases.
import { conformance } from "holdfast/conformance";
import { openStore } from "./runtime-store.mjs";

const [, , url = "memory:", ttlMs = "", words = ""] = process.argv;
const CONCURRENCY = 8;

const probe = await openStore({ url, namespace: "probe" });
const { traits } = probe;
await probe.close();

const cases = conformance({
  traits,
  ...(ttlMs && { ttlMs: Number(ttlMs) }),
  open: (namespace) => openStore({ url, namespace }),
  child: {
    module: new URL("./runtime-store.mjs", import.meta.url),
    argument: (namespace) => ({ url, namespace }),
  },
}).filter(({ title, skip }) => skip === null && title.includes(words));

/** @type {{ passed: number, failed: Record<string, string> }} */
const outcome = { passed: 0, failed: {} };

/** @param {(typeof cases)[number]} one */
async function run({ title, run }) {
  try {
    await run();
    outcome.passed += 1;
  } catch (error) {
    outcome.failed[title] = String(error).slice(0, 500);
  }
}

const queue = cases.filter(({ alone }) => !alone);
const worker = async () => {
  for (let one = queue.shift(); one; one = queue.shift()) await run(one);
};
await Promise.all(Array.from({ length: CONCURRENCY }, worker));
for (const one of cases.filter(({ alone }) => alone)) await run(one);
console.log(JSON.stringify(outcome));
process.exit();
