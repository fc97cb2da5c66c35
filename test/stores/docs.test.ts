/** Programs of the documentation that need a server. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { postgresMigration } from "../../src/stores/postgres/index.js";
import { startEtcd } from "../servers/etcd.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import { closeAll, startAll } from "../servers/server-process.js";

const root = join(import.meta.dirname, "../..");
const project = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
const run = promisify(execFile);

beforeAll(() => {
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/holdfast"));
  for (const client of ["etcd3", "ioredis", "pg", "redis"]) {
    symlinkSync(join(root, "node_modules", client), join(project, "node_modules", client));
  }
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)];
  return blocks.flatMap(([, mark, code = ""]) => (mark === language ? [code] : []));
}

/** Debian's etcd has a known fault, and the store says so. */
const NODE_OPTIONS = ["--disable-warning=HF_ETCD_ENDS_LIVE_LEASES"];

/** Runs every program of a page with these words replaced, and returns the output. */
async function runPage(
  page: string,
  replacements: readonly (readonly [from: string, to: string])[],
): Promise<string[]> {
  const programs = blocksOf(page, "ts").filter((code) => /^import /m.test(code));
  for (const [from] of replacements) expect(programs.join(""), page).toContain(from);
  const printed: string[] = [];
  for (const [index, code] of programs.entries()) {
    let program = code;
    for (const [from, to] of replacements) program = program.replaceAll(from, to);
    const file = join(project, `${page.replaceAll("/", "-")}-${index}.mjs`);
    writeFileSync(file, program);
    const args = [...NODE_OPTIONS, file];
    const { stdout, stderr } = await run(process.execPath, args, { timeout: 60_000 });
    expect(stderr).toBe("");
    printed.push(stdout);
  }
  return printed;
}

test.concurrent("redis", async () => {
  await using server = await startRedis();
  const printed = await runPage("docs/stores/redis.md", [["redis://127.0.0.1:6379", server.url]]);
  expect(printed).toEqual([expect.stringMatching(/^\d{16}n\n$/)]);
});

test.concurrent("redlock", async () => {
  const servers = await startAll([startRedis(), startRedis(), startRedis()]);
  try {
    const [a, b, c] = servers.map(({ port }) => `${port}`);
    const printed = await runPage("docs/stores/redlock.md", [
      ['["a.example", "b.example", "c.example"]', `[${a}, ${b}, ${c}]`],
      ["{ host }", "{ port: host }"],
      ['{ host: "a.example" }', `{ port: ${a} }`],
      // New nodes vote only after the longest ttl.
      ["redlockStore({ clients })", 'redlockStore({ clients, bootstrap: "now" })'],
    ]);
    const token = expect.stringMatching(/^\d{16}n\n$/);
    expect(printed).toEqual([token, token]);
  } finally {
    await closeAll(servers);
  }
});

test.concurrent("etcd", async () => {
  await using server = await startEtcd();
  const endpoints = '["10.0.0.1:2379", "10.0.0.2:2379", "10.0.0.3:2379"]';
  const here = `["127.0.0.1:${server.port}"]`;
  const printed = await runPage("docs/stores/etcd.md", [[endpoints, here]]);
  expect(printed).toEqual([expect.stringMatching(/^\d+n\n$/), ""]);
});

test.concurrent("postgres", async () => {
  await using server = await startPostgres();
  const printed = await runPage("docs/stores/postgres.md", [
    ["postgres://app@127.0.0.1:5432/app", server.url],
  ]);
  expect(printed).toEqual([expect.stringMatching(/^\d{16}n\n$/)]);
  const grants = blocksOf("docs/stores/postgres.md", "sql").join("").replaceAll(" to app;", "");
  for (const line of grants.trim().split("\n")) {
    expect(postgresMigration({ role: "app" })).toContain(`${line} to "app";`);
  }
});

test.concurrent("the example of a fenced transaction", async () => {
  await using server = await startPostgres();
  const example = new URL("../../examples/fenced-transaction.mjs", import.meta.url);
  const env = { ...process.env, DATABASE_URL: server.url };
  const { stdout } = await run(process.execPath, [fileURLToPath(example)], { env });
  expect(stdout.trimEnd().split("\n")).toEqual([
    "the later token is higher: true",
    "quick writes 2: accepted",
    "slow writes 1: refused",
    "the slow lease is lost, the total is 2",
  ]);
});

test.concurrent("the example of a processor for BullMQ", async () => {
  await using server = await startRedis();
  const example = new URL("../../examples/bullmq-customers.mjs", import.meta.url);
  const env = { ...process.env, REDIS_URL: server.url };
  const { stdout, stderr } = await run(process.execPath, [fileURLToPath(example)], { env });
  expect(stderr).toBe("");
  const [first, second] = stdout.trimEnd().split("\n");
  expect(first).toBe("8 jobs done, 0 times two of one customer at once");
  expect(second).toMatch(/^never more than [12] customers at work$/);
});

test.concurrent("file", async () => {
  // Not in the default file of the user who runs the tests.
  const printed = await runPage("docs/stores/file.md", [
    ["fileStore()", `fileStore({ path: ${JSON.stringify(join(project, "own.db"))} })`],
    ["/var/lib/app/locks.db", join(project, "app.db")],
  ]);
  expect(printed).toEqual([""]);
});
