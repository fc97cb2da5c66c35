/**
 * A program with the packed package, bundled and started where there is neither the project nor
 * its packages.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { BUNDLERS } from "./bundlers.js";
import { PackedProject, root } from "./packed-project.js";

/** Opens each kind of store, and prints what comes of it. */
const PROGRAM = `
import { connect, Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const [, , redis, file] = process.argv;

async function show(title, open) {
  try {
    const locks = await open();
    console.log(title, await locks.mutex("a").run(async (lease) => typeof lease.token));
    await locks.close();
  } catch (error) {
    console.log(title, error.message);
  }
}

async function main() {
  await show("memory", async () => new Holdfast(memoryStore({ warnInProduction: false })));
  await show("file", () => connect(file));
  await show("thread", () => connect(file, { thread: true }));
  await show("redis", () => connect(redis));
  await show("postgres", () => connect("postgres://127.0.0.1:1/nothing"));
}

main();
`;

const run = promisify(execFile);
const LOCKED = expect.stringMatching(/^bigint$/);
const NO_THREAD = expect.stringMatching(/leave holdfast out of the bundle/);
const path = process.env.PATH?.split(delimiter) ?? [];
const hasRedis = path.some((place) => existsSync(join(place, "redis-server")));

const isFull = Boolean(process.env.HOLDFAST_FULL);

/** The clients that are installed, and what follows. The first ones are preferred. */
const CASES = [
  { clients: [], redis: /needs ioredis 5 or 6/, postgres: /needs pg 8.7 or later, or postgres 3/ },
  { clients: ["ioredis", "redis", "pg"], redis: /^bigint$/, postgres: /ECONNREFUSED/ },
  { clients: ["redis", "postgres"], redis: /^bigint$/, postgres: /ECONNREFUSED/ },
];

describe.each(CASES)("with the clients $clients", ({ clients, redis, postgres }) => {
  const project = new PackedProject();
  const away = `${project.folder}-away`;
  let folder: string;
  let server: RedisServer | undefined;

  beforeAll(async () => {
    project.install();
    project.write("program.mjs", PROGRAM);
    for (const name of clients) {
      symlinkSync(join(root, "node_modules", name), join(project.folder, "node_modules", name));
    }
    folder = mkdtempSync(join(tmpdir(), "holdfast-bundles-"));
    // Before Node 22.13 the file store needs it, and no bundle can contain it.
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(join(root, "node_modules/libsql"), join(folder, "node_modules/libsql"));
    if (clients.length > 0 && hasRedis) server = await startRedis();
  });

  afterAll(async () => {
    await server?.close();
    project.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  // The last case differs in how a client gives its exports, of which esbuild has all three ways.
  const isShort = clients.includes("postgres") && !isFull;
  const isSkipped = clients.length > 0 && !hasRedis;
  const bundlers = Object.entries(BUNDLERS).filter(([name]) => !isShort || /esbuild/.test(name));

  /** Starts a bundle and returns what it prints, by title. */
  async function start(file: string): Promise<Record<string, string>> {
    const store = pathToFileURL(join(folder, "locks/locks.db")).href;
    const args = [file, server?.url ?? "redis://127.0.0.1:1", store];
    const { stdout, stderr } = await run(process.execPath, args, { cwd: folder });
    expect(stderr).toBe("");
    return Object.fromEntries(stdout.split("\n").map((line) => line.split(/ (.*)/)));
  }

  const files = new Map<string, string>();

  it.skipIf(isSkipped).each(bundlers)("%s", async (name, bundle) => {
    const target = join(folder, name.replaceAll(/\W+/g, "-"));
    const { file, warnings } = await bundle(join(project.folder, "program.mjs"), target);
    expect(warnings).toEqual([]);
    files.set(name, join(target, file));
  });

  describe("where the project is not", () => {
    beforeAll(() => renameSync(project.folder, away));
    afterAll(() => renameSync(away, project.folder));

    // At the same time: a Postgres that is not there is waited for.
    it.skipIf(isSkipped).concurrent.each(bundlers)("runs: %s", async (name) => {
      expect(await start(files.get(name) ?? "not bundled")).toMatchObject({
        memory: LOCKED,
        file: LOCKED,
        thread: NO_THREAD,
        redis: expect.stringMatching(redis),
        postgres: expect.stringMatching(postgres),
      });
    });
  });
});
