import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startProcess } from "../faults/process.js";
import { isAlive } from "./process-state.js";
import { waitUntil } from "./wait-until.js";

const here = fileURLToPath(new URL(".", import.meta.url));
let dir: string;

// The test kills a process that runs these modules. Node runs them compiled.
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "holdfast-reaper-test-"));
  const tsc = fileURLToPath(new URL("../../node_modules/.bin/tsc", import.meta.url));
  const options = ["--ignoreConfig", "--module", "nodenext", "--target", "es2022"];
  options.push("--types", "node", "--lib", "es2023,esnext.disposable", "--outDir", dir);
  await promisify(execFile)(tsc, [...options, join(here, "redis.ts")], { cwd: here });
  await writeFile(join(dir, "package.json"), '{ "type": "module" }');
  await writeFile(
    join(dir, "abandons.js"),
    `import { startRedis } from "./redis.js";
     const { pid, reaperPid, dir } = await startRedis();
     process.send({ pid, reaperPid, dir });`,
  );
});

afterAll(() => rm(dir, { recursive: true }));

it("ends a server whose parent process was killed, also a paused server", async () => {
  await using owner = startProcess(pathToFileURL(join(dir, "abandons.js")));
  const server = await owner.receive<{ pid: number; reaperPid: number; dir: string }>();
  expect([server.pid, server.reaperPid].filter(isAlive)).toHaveLength(2);
  process.kill(server.pid, "SIGSTOP");
  await owner.kill();
  await waitUntil(() => ![server.pid, server.reaperPid].some(isAlive), {
    what: "both processes have ended",
  });
  expect(existsSync(server.dir)).toBe(false);
});
