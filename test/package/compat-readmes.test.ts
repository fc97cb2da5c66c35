/** The examples in the READMEs of redlock and redis-semaphore compile with the import changed. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { root } from "./packed-project.js";

/** The names that examples use without a declaration. */
const GIVEN: Readonly<Record<string, string>> = {
  redlock: `
import Redlock, { ResourceLockedError as Refusal } from "holdfast/compat/redlock";
declare global {
  const redlock: Redlock;
  const ResourceLockedError: typeof Refusal;
  const senderId: string, recipientId: string;
  function something(): Promise<void>;
  function somethingElse(): Promise<void>;
}`,
  redlock4: `
import Redlock from "holdfast/compat/redlock4";
declare global {
  const redlock: Redlock;
  const using: any;
  function unlockErrorHandler(error: Error): void;
}`,
  "redis-semaphore": `
import * as semaphores from "holdfast/compat/redis-semaphore";
import Redis from "ioredis";
declare global {
  const Mutex: typeof semaphores.Mutex;
  const redisClient: Redis;
  const someQueue: { publish(message: object): void };
  const logger: { info(text: string): void };
}`,
};

/** The changes that a program needs, and those that mend an example. */
const CHANGES: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  redlock: [[/"(\.\/)?redlock"/, '"holdfast/compat/redlock"']],
  redlock4: [
    [/^var Redlock = require\('redlock'\);/m, 'import Redlock from "holdfast/compat/redlock4";'],
  ],
  "redis-semaphore": [
    // The examples have the imports of TypeScript as comments.
    [/^const \w+ = require\('.*'\).*\n/gm, ""],
    [/^\/\/ (import .*)$/gm, "$1"],
    [/'redis-semaphore'/, "'holdfast/compat/redis-semaphore'"],
    // The example of RedlockSemaphore uses a class that it does not import.
    [/new Semaphore\(redisClients/, "new RedlockSemaphore(redisClients"],
  ],
};

const packages = Object.keys(CHANGES);
const project = mkdtempSync(join(tmpdir(), "holdfast-readmes-"));

function examplesOf(name: string): string[] {
  const readme = readFileSync(join(root, `node_modules/${name}/README.md`), "utf8");
  const blocks = [...readme.matchAll(/^```(?:ts|js|javascript)\n([\s\S]*?)^```$/gm)];
  const code = blocks.map(([, block = ""]) => block);
  // One example of redlock 4 lacks a parenthesis.
  return code.filter((block) => !/lock\.extend\(1000, function\(err, lock\)/.test(block));
}

beforeAll(() => {
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/holdfast"));
  for (const name of ["@types", "ioredis"]) {
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

it.each(packages)("of %s", (name) => {
  const examples = examplesOf(name);
  expect(examples.length).toBeGreaterThan(4);
  const folder = join(project, name);
  mkdirSync(folder);
  writeFileSync(join(folder, "given.d.ts"), GIVEN[name] ?? "");
  for (const [at, example] of examples.entries()) {
    const changed = (CHANGES[name] ?? []).reduce(
      (code, [from, to]) => code.replace(from, to),
      example,
    );
    writeFileSync(join(folder, `${at}.ts`), `${changed}\nexport {};\n`);
  }
  const compilerOptions = {
    target: "es2022",
    // The examples import ioredis as a bundler does.
    module: "esnext",
    moduleResolution: "bundler",
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
    strict: true,
    // The examples of two packages are in JavaScript.
    noImplicitAny: name === "redlock",
    esModuleInterop: true,
    skipLibCheck: true,
    noEmit: true,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["."] }));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const options = { cwd: folder, encoding: "utf8", stdio: "pipe" } as const;
  try {
    execFileSync(process.execPath, [tsc, "--pretty", "false"], options);
  } catch (error) {
    const { stdout } = error as { stdout: string };
    expect.fail(stdout);
  }
});
