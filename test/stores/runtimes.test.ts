/**
 * The packed package in Bun and Deno: the conformance kit on the stores, with the clients of each.
 * Only in the full run, which downloads the runtimes as packages.
 */

import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Harness } from "../../src/conformance/index.js";
import { isFull } from "../fixtures/depth.js";
import { PackedProject, root } from "../package/packed-project.js";
import { startEtcd } from "../servers/etcd.js";
import { fetchProgram } from "../servers/fetched-program.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import type { ServerProcess } from "../servers/server-process.js";
import { startZookeeper, zookeeperMissing } from "../servers/zookeeper.js";
import { ZOOKEEPER_EXEMPT } from "../zookeeper/harness.js";

const run = promisify(execFile);
const isKnown = process.platform === "linux" && process.arch === "x64";
const MINUTE_MS = 60_000;

const RUNTIMES = [
  { runtime: "Bun", name: "@oven/bun-linux-x64", version: "1", program: "bin/bun", args: [] },
  {
    runtime: "Deno",
    name: "@deno/linux-x64-glibc",
    version: "2",
    program: "deno",
    args: ["run", "--allow-all"],
  },
];

interface Place {
  readonly store: string;
  /** The package that a URL is opened with. */
  readonly client?: string;
  start?(): Promise<ServerProcess & { readonly port: number }>;
  /** Of the shortest leases, as in the test of the store on Node. Default: that of the kit. */
  readonly ttlMs?: number;
  /** The cases that do not apply, as in the test of the store on Node. */
  readonly exempt?: NonNullable<Harness["exempt"]>;
  readonly skip?: string | null;
}

const zookeeper = () => startZookeeper({ tickMs: 100, minSessionMs: 100, maxSessionMs: 120_000 });

const PLACES: readonly Place[] = [
  { store: "memory" },
  { store: "redis", client: "ioredis", start: startRedis },
  { store: "redis", client: "redis", start: startRedis },
  { store: "redis", client: "iovalkey", start: startRedis },
  { store: "postgres", client: "pg", start: startPostgres },
  { store: "postgres", client: "postgres", start: startPostgres },
  { store: "etcd", start: startEtcd, ttlMs: 2_000 },
  {
    store: "zookeeper",
    start: zookeeper,
    ttlMs: 2_000,
    exempt: ZOOKEEPER_EXEMPT,
    skip: zookeeperMissing(),
  },
];

const CLIENTS = PLACES.flatMap(({ client }) => client ?? []);

describe.skipIf(!isFull || !isKnown).each(RUNTIMES)("in $runtime", (fetched) => {
  let project: PackedProject;
  let command: string;

  beforeAll(async () => {
    project = new PackedProject();
    project.install();
    for (const file of ["runtime-kit.mjs", "runtime-store.mjs"]) {
      copyFileSync(join(import.meta.dirname, file), join(project.folder, file));
    }
    const place = join(project.folder, "runtime");
    mkdirSync(place);
    command = await fetchProgram(place, fetched.name, fetched.version, fetched.program);
  });

  afterAll(() => project?.remove());

  function installOnly(client: string | undefined): void {
    for (const name of CLIENTS) rmSync(join(project.folder, "node_modules", name), { force: true });
    if (!client) return;
    symlinkSync(join(root, "node_modules", client), join(project.folder, "node_modules", client));
  }

  async function kit(
    url: string,
    ttlMs: number | "" = "",
  ): Promise<{ passed: number; failed: Record<string, string> }> {
    const args = [...fetched.args, "runtime-kit.mjs", url, `${ttlMs}`];
    const limits = { cwd: project.folder, timeout: 10 * MINUTE_MS };
    const { stdout } = await run(command, args, limits);
    return JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
  }

  for (const { store, client, start, ttlMs, exempt = {}, skip = null } of PLACES) {
    const title = `the kit on ${store}${client ? ` by ${client}` : ""}`;
    it.skipIf(skip !== null)(
      title,
      async () => {
        installOnly(client);
        const server = await start?.();
        try {
          // Only Postgres needs a user and a database.
          const [user, database] = store === "postgres" ? ["postgres@", "/postgres"] : ["", ""];
          const url = server ? `//${user}127.0.0.1:${server.port}${database}` : "";
          const outcome = await kit(`${store}:${url}`, ttlMs);
          console.log(`${fetched.runtime}, ${title}: ${outcome.passed} cases pass`);
          const failed = Object.entries(outcome.failed).filter(([one]) => !(one in exempt));
          expect(failed).toEqual([]);
          expect(outcome.passed).toBeGreaterThan(50);
        } finally {
          await server?.close();
        }
      },
      12 * MINUTE_MS,
    );
  }

  it("the file store is refused, since processes share no clock", async () => {
    const refused = kit(`file:${project.folder}`);
    await expect(refused).rejects.toThrow(/cannot use the file store: its process\.hrtime/);
  });
});
