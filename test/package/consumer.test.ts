import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const tsc = join(root, "node_modules/typescript/bin/tsc");
const folder = mkdtempSync(join(tmpdir(), "holdfast-consumer-"));

/** What a newcomer writes first. */
const PROGRAM = `
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const locks = new Holdfast(memoryStore());
const token: bigint = await locks.mutex("a").run(async (lease) => lease.token);
console.log(typeof token);
await locks.close();
`;

const COMMONJS = `
const { Holdfast } = require("holdfast");
const { memoryStore } = require("holdfast/memory");

const locks = new Holdfast(memoryStore());
locks.mutex("a").run(async (lease) => lease.token)
  .then((token) => console.log(typeof token))
  .then(() => locks.close());
`;

function run(command: string, args: readonly string[], cwd: string = folder): string {
  try {
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

/** Type-checks with the libraries of a browser project: no disposable, no Node types. */
function compile(options: Record<string, unknown>): void {
  const compilerOptions = {
    target: "es2022",
    lib: ["es2022", "dom"],
    types: [],
    strict: true,
    skipLibCheck: false,
    outDir: "out",
    ...options,
  };
  const config = { compilerOptions, files: ["program.mts"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  run(process.execPath, [tsc]);
}

beforeAll(() => {
  const packed = JSON.parse(
    run("npm", ["pack", "--json", "--ignore-scripts", `--pack-destination=${folder}`], root),
  );
  const [{ filename }] = Array.isArray(packed) ? packed : Object.values(packed);
  mkdirSync(join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true }));
  writeFileSync(join(folder, "program.mts"), PROGRAM);
  writeFileSync(join(folder, "program.cjs"), COMMONJS);
  const offline = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  run("npm", ["install", `./${filename}`, ...offline]);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a project with nothing but the package", () => {
  it("compiles with NodeNext and runs", () => {
    compile({ module: "nodenext", moduleResolution: "nodenext" });
    expect(run(process.execPath, ["out/program.mjs"]).trim()).toBe("bigint");
  });

  it("compiles for a bundler", () => {
    compile({ module: "esnext", moduleResolution: "bundler" });
  });

  it("requires it from CommonJS", () => {
    expect(run(process.execPath, ["program.cjs"]).trim()).toBe("bigint");
  });
});
