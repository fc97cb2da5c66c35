/**
 * The page of the doctor has exactly the checks of the code, and each check finds a fault that a
 * test plants.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { processChecks } from "../src/api/doctor.js";
import type { Severity } from "../src/contract/examination.js";
import { etcdChecks } from "../src/stores/etcd/doctor.js";
import { fileChecks } from "../src/stores/file/doctor.js";
import { memoryChecks } from "../src/stores/memory/examination.js";
import { postgresChecks } from "../src/stores/postgres/doctor.js";
import { redisChecks, redisServerChecks } from "../src/stores/redis/doctor.js";
import { serverChecks } from "../src/stores/redis-client/doctor.js";
import { redlockChecks, singleServerChecks } from "../src/stores/redlock/doctor.js";
import { zookeeperChecks } from "../src/stores/zookeeper/doctor.js";

const ids = [
  processChecks,
  memoryChecks,
  fileChecks,
  serverChecks,
  redisServerChecks,
  redisChecks,
  redlockChecks,
  singleServerChecks,
  postgresChecks,
  etcdChecks,
  zookeeperChecks,
].flatMap((checks) => checks.map(({ id }) => id));

const page = readFileSync(new URL("../docs/operate.md", import.meta.url), "utf8");

/** The rows of the table of checks: the ids, and the worst severity that they give. */
const rows = page.split("\n").flatMap((line) => {
  const [, cell = "", , worst = ""] = line.split(/ ?\| ?/).slice(0, 4);
  if (!cell.startsWith("`")) return [];
  const found = [...cell.matchAll(/`(\w[\w-]*\/[\w-]+)`/g)].map(([, id = ""]) => id);
  return found.map((id) => ({ id, worst }));
});

/** From the least to the worst. */
const SEVERITIES: readonly Severity[] = ["ok", "skipped", "note", "warning", "danger"];

/** Where a finding is expected in a test: `"redis/eviction", "danger"`. */
const EXPECTED = /"([\w-]+\/[\w-]+)",\s*"(note|warning|danger)"/g;
/** The same, where the finding is taken apart. */
const TAKEN_APART = /"([\w-]+\/[\w-]+)"[^;]*?severity: "(skipped|note|warning|danger)"/g;

/** The tests that start servers, or use this very process. */
function plantedFaults(): { readonly id: string; readonly severity: Severity }[] {
  const folder = import.meta.dirname;
  const doctors = readdirSync(folder).map((name) => join(folder, name, "doctor.test.ts"));
  const files = doctors.filter((file) => existsSync(file));
  const texts = [...files, join(import.meta.dirname, "../src/api/doctor.test.ts")].map((file) =>
    readFileSync(file, "utf8"),
  );
  return texts.flatMap((text) =>
    [EXPECTED, TAKEN_APART].flatMap((form) =>
      [...text.matchAll(form)].map(([, id = "", severity]) => ({
        id,
        severity: severity as Severity,
      })),
    ),
  );
}

it("lists every check of the doctor once, in the order of the code, and no other", () => {
  expect(rows.map(({ id }) => id)).toEqual(ids);
});

it("has no two checks of one name", () => {
  expect(ids).toEqual([...new Set(ids)]);
  expect(ids.length).toBeGreaterThan(60);
});

it("finds a planted fault by every check, as bad as the page says and no worse", () => {
  const planted = plantedFaults();
  const worstOf = (id: string): Severity | undefined => {
    const found = planted.filter((one) => one.id === id).map(({ severity }) => severity);
    return found.sort((a, b) => SEVERITIES.indexOf(b) - SEVERITIES.indexOf(a))[0];
  };
  const found = ids.map((id) => ({ id, worst: worstOf(id) }));
  // The page has one row for the clocks and the round trip of a store.
  const shared = /\/(clock-skew|round-trip)$/;
  const wanted = rows.map(({ id, worst }) => ({ id, worst: shared.test(id) ? "warning" : worst }));
  expect(found).toEqual(wanted);
  const kinds = new Set(planted.map(({ id, severity }) => `${id} ${severity}`));
  expect(kinds.size).toBeGreaterThan(ids.length);
});
