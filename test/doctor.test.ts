/** The page of the doctor has exactly the checks of the code. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { processChecks } from "../src/process-check.js";
import { etcdChecks } from "../src/stores/etcd/examination.js";
import { fileChecks } from "../src/stores/file/examination.js";
import { memoryChecks } from "../src/stores/memory/examination.js";
import { postgresChecks } from "../src/stores/postgres/examination.js";
import { redisChecks, redisServerChecks } from "../src/stores/redis/examination.js";
import { serverChecks } from "../src/stores/redis-client/server-checks.js";
import { redlockChecks } from "../src/stores/redlock/examination.js";
import { loneChecks } from "../src/stores/redlock/lone-examination.js";
import { zookeeperChecks } from "../src/stores/zookeeper/examination.js";

const ids = [
  processChecks,
  memoryChecks,
  fileChecks,
  serverChecks,
  redisServerChecks,
  redisChecks,
  redlockChecks,
  loneChecks,
  postgresChecks,
  etcdChecks,
  zookeeperChecks,
].flatMap((checks) => checks.map(({ id }) => id));

it("lists every check of the doctor once, in the order of the code, and no other", () => {
  const page = readFileSync(new URL("../docs/operate.md", import.meta.url), "utf8");
  const rows = page.split("\n").flatMap((line) => /^\| (`[^|]+`) \|/.exec(line)?.[1] ?? []);
  const listed = rows.flatMap((cell) => [...cell.matchAll(/`(\w[\w-]*\/[\w-]+)`/g)]);
  expect(listed.map(([, id]) => id)).toEqual(ids);
});

it("has no two checks of one name", () => {
  expect(ids).toEqual([...new Set(ids)]);
  expect(ids.length).toBeGreaterThan(60);
});
