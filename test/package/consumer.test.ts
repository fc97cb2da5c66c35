import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PackedProject, root } from "./packed-project.js";

/** The first program of a new user. */
const PROGRAM = `
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const locks = new Holdfast(memoryStore());
const token: bigint = await locks.mutex("a").run(async (lease) => lease.token);
console.log(typeof token);
await locks.close();
`;

/** The shortest program of an author of a store. */
const AUTHOR = `
import { type Arbiter, arbiterStore, localRuntime, type Store } from "holdfast/store";

export const storeOver = (arbiter: Arbiter): Store => arbiterStore(arbiter);
console.log(typeof localRuntime.clock.nowMs());
`;

const COMMONJS = `
const { Holdfast } = require("holdfast");
const { memoryStore } = require("holdfast/memory");

const locks = new Holdfast(memoryStore());
locks.mutex("a").run(async (lease) => lease.token)
  .then((token) => console.log(typeof token))
  .then(() => locks.close());
`;

const COMMONJS_TYPESCRIPT = `
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const locks = new Holdfast(memoryStore());
void locks.mutex("a").run(async (lease) => lease.token)
  .then((token: bigint) => console.log(typeof token))
  .then(() => locks.close());
`;

/** The advice of docs/frameworks.md under \`module: node16\`. */
const COMMONJS_NODE16 = `
import type { Holdfast } from "holdfast" with { "resolution-mode": "import" };

async function openLocks(): Promise<Holdfast> {
  const { connect } = await import("holdfast");
  return connect("memory:");
}

void openLocks().then(async (locks) => {
  const token: bigint = await locks.mutex("a").run(async (lease) => lease.token);
  console.log(typeof token);
  await locks.close();
});
`;

/** A case of the kit that starts a child process, on a store that reaches it. */
const CONFORMANCE = `
import { conformance } from "holdfast/conformance";
import { fileStore } from "holdfast/file";

const path = process.argv[2];
const argument = (namespace) => ({ path, namespace });
const cases = conformance({
  traits: fileStore().traits,
  open: async (namespace) => fileStore(argument(namespace)),
  child: { module: new URL("./child.mjs", import.meta.url), argument },
});
await cases.find(({ title }) => /killed/.test(title)).run();
console.log("passed");
`;

const CHILD = `
import { fileStore } from "holdfast/file";
export const openStore = (options) => fileStore(options);
`;

/** A thread runs a file of the package. */
const THREAD = `
const { pathToFileURL } = require("node:url");
const { connect } = require("holdfast");

connect(pathToFileURL(process.argv[2]).href, { thread: true }).then(async (locks) => {
  console.log(await locks.mutex("a").run(async (lease) => typeof lease.token));
  await locks.close();
});
`;

const hasSqlite = process.getBuiltinModule?.("node:sqlite") !== undefined;

describe("a project with nothing but the package", () => {
  const project = new PackedProject();

  beforeAll(() => {
    project.install();
    project.write("program.mts", PROGRAM);
    project.write("author.mts", AUTHOR);
    project.write("program.cjs", COMMONJS);
    project.write("program.cts", COMMONJS_TYPESCRIPT);
    project.write("node16.cts", COMMONJS_NODE16);
  });

  afterAll(() => project.remove());

  it("compiles with NodeNext and runs, also its own store and CommonJS", () => {
    project.compile(["program.mts", "author.mts", "program.cts"], { module: "nodenext" });
    expect(project.node("out/program.mjs")).toBe("bigint");
    expect(project.node("out/author.mjs")).toBe("number");
    expect(project.node("out/program.cjs")).toBe("bigint");
  });

  it("compiles for a bundler", () => {
    project.compile(["program.mts"], { module: "esnext", moduleResolution: "bundler" });
  });

  it("requires it from CommonJS", () => {
    expect(project.node("program.cjs")).toBe("bigint");
  });

  it("compiles CommonJS with node16 where it is imported dynamically, and only there", () => {
    project.compile(["node16.cts"], { module: "node16" });
    expect(project.node("out/node16.cjs")).toBe("bigint");
    expect(() => project.compile(["program.cts"], { module: "node16" })).toThrow(/TS1479/);
  });

  it("installs nothing else, and names the package that the file store needs", () => {
    expect(existsSync(join(project.folder, "node_modules/libsql"))).toBe(false);
    const store = `file:${join(project.folder, "locks/locks.db")}`;
    const list = ["node_modules/.bin/holdfast", "list", "--store", store];
    if (hasSqlite) project.node(...list);
    else expect(() => project.node(...list)).toThrow(/npm install libsql/);
  });

  it("has the command", () => {
    expect(project.node("node_modules/.bin/holdfast", "--version")).toMatch(/^\d+\.\d+\.\d+/);
    const args = ["doctor", "--store", "memory:"];
    expect(project.node("node_modules/.bin/holdfast", ...args)).toContain("memory/scope");
  });
});

describe("a project with more packages", () => {
  const project = new PackedProject();

  afterAll(() => project.remove());

  it("installs beside clients that holdfast cannot use", () => {
    project.install({
      "@nestjs/common": "8.4.7",
      "@opentelemetry/api": "0.18.1",
      bluebird: "2.11.0",
      ioredis: "3.2.2",
      libsql: "0.1.0",
      pg: "7.18.2",
      postgres: "1.0.2",
      "prom-client": "11.5.3",
      redis: "2.8.0",
    });
  });

  it("names the clients that it can use", () => {
    const connect = 'import("holdfast").then(({ connect }) => connect("redis://127.0.0.1:1"))';
    const message = /needs ioredis 5 or 6, .* the installed ioredis and redis cannot be used/;
    for (const name of ["ioredis", "redis"]) {
      const path = join(project.folder, "node_modules", name);
      rmSync(path);
      symlinkSync(join(root, "node_modules", `${name}4`), path);
    }
    expect(() => project.node("-e", connect)).toThrow(message);
  });

  it("starts the processes of the conformance kit", () => {
    project.write("conformance.mjs", CONFORMANCE);
    project.write("child.mjs", CHILD);
    project.write("node_modules/libsql/package.json", JSON.stringify({ main: "index.js" }));
    const libsql = JSON.stringify(join(root, "node_modules/libsql"));
    project.write("node_modules/libsql/index.js", `module.exports = require(${libsql});`);
    expect(project.node("conformance.mjs", join(project.folder, "locks/locks.db"))).toBe("passed");
  });

  it("runs a command under a lock", () => {
    const store = `file:${join(project.folder, "locks/locks.db")}`;
    const args = ["run", "a", "--store", store, "--", process.execPath, "-p", "7"];
    expect(project.node("node_modules/.bin/holdfast", ...args)).toBe("7");
  });

  it("opens a store in a thread, from CommonJS", () => {
    project.write("thread.cjs", THREAD);
    expect(project.node("thread.cjs", join(project.folder, "locks/thread.db"))).toBe("bigint");
  });
});
