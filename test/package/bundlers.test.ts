/**
 * A program with the packed package, bundled and started where there is neither the project nor
 * its packages.
 */

import { execFile } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { BUNDLERS } from "./bundlers.js";
import { PackedProject, root } from "./packed-project.js";

/** Opens each kind of store, and prints what comes of it. */
const PROGRAM = `
import { connect, Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const [, , file, redis, postgres] = process.argv;

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
  await show("postgres", () => connect(postgres));
}

main();
`;

const run = promisify(execFile);
const LOCKED = expect.stringMatching(/^bigint$/);
const NO_THREAD = expect.stringMatching(/leave holdfast out of the bundle/);
const path = process.env.PATH?.split(delimiter) ?? [];
const hasRedis = path.some((place) => existsSync(join(place, "redis-server")));

/** The clients that are installed, and what follows. The first ones are preferred. */
const CASES = [
  { clients: [], redis: /needs ioredis 5 or 6/, postgres: /needs pg 8.7 or later, or postgres 3/ },
  { clients: ["ioredis", "redis", "pg"], redis: /^bigint$/, postgres: /28P01/ },
  { clients: ["redis", "postgres"], redis: /^bigint$/, postgres: /28P01/ },
];

const project = new PackedProject();
/** A Postgres that refuses every user: one that is not there would be waited for. */
const refusing = createServer((socket) => {
  const fields = Buffer.from("SFATAL\0VFATAL\0C28P01\0Mwrong password\0\0");
  const length = Buffer.alloc(4);
  length.writeInt32BE(length.length + fields.length);
  socket.on("error", () => {});
  socket.on("data", () => socket.end(Buffer.concat([Buffer.from("E"), length, fields])));
});
let server: RedisServer | undefined;

beforeAll(async () => {
  project.install();
  project.write("program.mjs", PROGRAM);
  if (hasRedis) server = await startRedis();
  refusing.listen(0, "127.0.0.1");
  await once(refusing, "listening");
});

afterAll(async () => {
  refusing.close();
  await server?.close();
  project.remove();
});

describe.each(CASES)("with the clients $clients", ({ clients, redis, postgres }) => {
  const installed = (name: string): string => join(project.folder, "node_modules", name);
  let folder: string;

  beforeAll(() => {
    for (const name of clients) symlinkSync(join(root, "node_modules", name), installed(name));
    folder = mkdtempSync(join(tmpdir(), "holdfast-bundles-"));
    // Before Node 22.13 the file store needs it, and no bundle can contain it.
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(join(root, "node_modules/libsql"), join(folder, "node_modules/libsql"));
  });

  afterAll(() => {
    for (const name of clients) unlinkSync(installed(name));
    rmSync(folder, { recursive: true, force: true });
  });

  // The last case differs in how a client gives its exports, of which esbuild has all three ways.
  const isShort = clients.includes("postgres") && !isFull;
  // With clients, Rollup takes as long as all others; Rolldown and Vite bundle by its rules.
  const isLong = (name: string): boolean => name === "rollup" && clients.length > 0 && !isFull;
  const isSkipped = clients.length > 0 && !hasRedis;
  const bundlers = Object.entries(BUNDLERS).filter(([name]) =>
    isShort ? /esbuild/.test(name) : !isLong(name),
  );

  /** Starts a bundle and returns what it prints, by title. */
  async function start(file: string): Promise<Record<string, string>> {
    const store = pathToFileURL(join(folder, "locks/locks.db")).href;
    const redisUrl = server?.url ?? "redis://127.0.0.1:1";
    const { port } = refusing.address() as AddressInfo;
    const args = [file, store, redisUrl, `postgres://127.0.0.1:${port}/nothing`];
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
    const away = (): string => `${project.folder}-away`;
    beforeAll(() => renameSync(project.folder, away()));
    afterAll(() => renameSync(away(), project.folder));

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
