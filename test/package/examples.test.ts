import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);

/** Examples that run until a signal stops them. */
const HEED_SIGTERM = ["leader.mjs", "worker.mjs"];

/** Examples that need a server: `test/stores/docs.test.ts` runs them. */
const NEED_SERVER = ["bullmq-customers.mjs", "fenced-transaction.mjs"];

/** The output of each example. Full URLs, so that knip finds unused files. */
const EXAMPLES: ReadonlyMap<URL, readonly string[]> = new Map([
  [
    new URL("../../examples/cron-once.mjs", import.meta.url),
    ["north: failed, the mail server is down", "east: sent in run 2", "south: done by east"],
  ],
  [
    new URL("../../examples/fencing.mjs", import.meta.url),
    [
      "the later token is higher: true",
      "quick writes 2: accepted",
      "slow writes 1: refused",
      "the slow lease is lost, the total is 2",
    ],
  ],
  [
    new URL("../../examples/leader.mjs", import.meta.url),
    [
      "north leads",
      "south leads",
      "north ends: revoked",
      "south ends: told to",
      "seen: north, south",
    ],
  ],
  [
    new URL("../../examples/metrics.mjs", import.meta.url),
    [
      "released: false",
      "acquire busy: 1",
      "acquire granted: 2",
      "lost revoked: 1",
      "release released: 1",
    ],
  ],
  [
    new URL("../../examples/own-store.mjs", import.meta.url),
    ["it locks", "the kit had enough to do", "it behaves"],
  ],
  [new URL("../../examples/transfer.mjs", import.meta.url), ["anna 90, ben 110, together 200"]],
  [
    new URL("../../examples/worker-pool.mjs", import.meta.url),
    ["started: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9", "never more than 5 connections, 0 left open"],
  ],
  [new URL("../../examples/worker.mjs", import.meta.url), ["job 1", "job 2", "job 3", "all done"]],
]);

const nameOf = (file: URL): string => file.pathname.slice(file.pathname.lastIndexOf("/") + 1);

it("lists every example", () => {
  const folder = new URL("../../examples/", import.meta.url);
  const programs = readdirSync(folder).filter((name) => name.endsWith(".mjs"));
  expect([...EXAMPLES.keys()].map(nameOf).concat(NEED_SERVER).sort()).toEqual(programs.sort());
});

it.each([...EXAMPLES].map(([file, lines]) => ({ name: nameOf(file), file, lines })))(
  "runs $name to its end",
  async ({ file, lines }) => {
    // A failing exit code rejects, and so does a program that is killed.
    const { stdout, stderr } = await run(process.execPath, [fileURLToPath(file)], {
      timeout: 60_000,
    });
    expect(stderr).toBe("");
    expect(stdout.trimEnd().split("\n")).toEqual(lines);
  },
);

it.each([...EXAMPLES.keys()].map((file) => ({ name: nameOf(file), file })))(
  "ends $name by SIGTERM without an error",
  async ({ name, file }) => {
    const child = spawn(process.execPath, [fileURLToPath(file)], { timeout: 60_000 });
    let errors = "";
    child.stderr.on("data", (text) => {
      errors += text;
    });
    const closed = once(child, "close");
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    const [code, signal] = await closed;
    expect(errors).toBe("");
    if (HEED_SIGTERM.includes(name)) expect([code, signal]).toEqual([0, null]);
    // The output may have been the last.
    else expect([0, "SIGTERM"]).toContain(code ?? signal);
  },
);
