import { join } from "node:path";
import { expect, it } from "vitest";
import { Workshop } from "./command-line.js";

const start = join(import.meta.dirname, "../../scripts/start.mjs");

it("npm start without a terminal shows the lock in use and prints a result", async () => {
  await using shop = new Workshop();
  const env = { npm_lifecycle_event: "start" };
  const { code, stdout } = await shop.startProgram(process.execPath, [start], { env }).result;
  expect(stdout).toContain("Verdict: the lock held.");
  expect(stdout.match(/^ {2}kept /gm)).toHaveLength(4);
  expect(stdout).toContain("is killed with SIGKILL");
  expect(stdout).not.toContain("\x1b[");
  expect(code).toBe(0);
});

it("npm start -- run … runs the command line", async () => {
  await using shop = new Workshop();
  const args = [start, "run", "-q", "x", "--", "sh", "-c", 'echo "$1"; exit 9', "sh", "a b"];
  const { code, stdout } = await shop.startProgram(process.execPath, args).result;
  expect([code, stdout]).toEqual([9, "a b\n"]);
});
