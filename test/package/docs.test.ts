import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, posix } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { headingsOf, linksOf } from "../fixtures/markdown.js";
import { GIVEN, GIVEN_AT_RUN_TIME, GIVEN_PACKAGES } from "./docs-given.js";

const root = join(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

const FOLDERS = [".", "docs", "docs/stores", "docs/zh", "examples", "simulation"];
const documents = FOLDERS.flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith(".md"))
    .map((name) => posix.join(folder, name)),
);

interface Block {
  /** Document and line, as a file name. */
  readonly name: string;
  readonly code: string;
  /** Whether it can run on the memory store. */
  readonly isProgram: boolean;
}

/** The blocks marked `ts`. A block marked `ts sketch` need not compile. */
const blocks: readonly Block[] = documents.flatMap((document) =>
  [...read(document).matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(({ index, 1: code = "" }) => {
    const line = read(document).slice(0, index).split("\n").length;
    const imports = [...code.matchAll(/^import .* from "(.*)";$/gm)].map(([, from]) => from);
    const isAtHand = (from = ""): boolean => /^(node:.*|holdfast|holdfast\/memory)$/.test(from);
    return {
      name: `${document.replace(/\.md$/, "").replaceAll("/", "-").toLowerCase()}-${line}`,
      code,
      isProgram: imports.length > 0 && imports.every(isAtHand),
    };
  }),
);

/** Source files with examples that need neither a server nor a package. */
const AT_HAND =
  /^(api\/holdfast|fence\/http|lease\/lease|locks\/\w+|stores\/memory\/memory-store)\.ts$/;

/** The examples in the comments of the public API, each in a function: some of them return. */
const commented: readonly Block[] = readdirSync(join(root, "src"), { recursive: true })
  .map(String)
  .filter((file) => file.endsWith(".ts"))
  .flatMap((file) => {
    const comments = read(`src/${file}`).matchAll(/@example\n((?: *\* ?.*\n)*?) *\*\//g);
    return [...comments].map(({ index, 1: comment = "" }) => {
      const lines = comment.split("\n").map((line) => line.replace(/^ *\* ?/, ""));
      const isImport = (line: string): boolean => line.startsWith("import ");
      const body = lines.filter((line) => !isImport(line)).join("\n");
      return {
        name: `${file.replace(/\.ts$/, "").replaceAll("/", "-")}-${index}`,
        code: `${lines.filter(isImport).join("\n")}\nexport default async () => {\n${body}};\n`,
        isProgram: AT_HAND.test(file),
      };
    });
  });

/**
 * A folder like a user's project with the built package, and like a store's folder in the sources:
 * code for either place compiles there.
 */
const project = mkdtempSync(join(tmpdir(), "holdfast-docs-"));
const folder = join(project, "src/stores/docs");

beforeAll(() => {
  mkdirSync(folder, { recursive: true });
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/holdfast"));
  for (const client of [
    "@nestjs",
    "@opentelemetry",
    "@types",
    "bullmq",
    "croner",
    "etcd3",
    "ioredis",
    "node-cron",
    "pg",
    "prom-client",
    "redis",
  ]) {
    symlinkSync(join(root, "node_modules", client), join(project, "node_modules", client));
  }
  for (const name of readdirSync(join(root, "src"))) {
    if (name !== "stores") symlinkSync(join(root, "src", name), join(project, "src", name));
  }
  for (const name of readdirSync(join(root, "src/stores"))) {
    symlinkSync(join(root, "src/stores", name), join(folder, "..", name));
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(folder, "given.d.ts"), GIVEN);
  writeFileSync(join(folder, "packages.d.ts"), GIVEN_PACKAGES);
  for (const { name, code } of [...blocks, ...commented]) {
    writeFileSync(join(folder, `${name}.ts`), `${code}\nexport {};\n`);
  }
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

function compile(some: readonly Block[], options: Record<string, unknown>): void {
  const compilerOptions = {
    target: "es2022",
    lib: ["es2023", "esnext.disposable"],
    module: "nodenext",
    types: ["node"],
    typeRoots: [join(root, "node_modules/@types")],
    strict: true,
    skipLibCheck: true,
    // As NestJS asks for.
    experimentalDecorators: true,
    ...options,
  };
  const files = ["given.d.ts", "packages.d.ts", ...some.map(({ name }) => `${name}.ts`)];
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  run(join(root, "node_modules/typescript/bin/tsc"), ["--pretty", "false"]);
}

function run(program: string, args: readonly string[] = []): void {
  try {
    // Programs that take the URL of their store from the environment run on the memory store.
    const env = { ...process.env, HOLDFAST_STORE: "memory:" };
    const options = { cwd: folder, encoding: "utf8", stdio: "pipe", timeout: 60_000, env } as const;
    execFileSync(process.execPath, [program, ...args], options);
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${program} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

describe("code in the documentation", () => {
  const programs = blocks.filter(({ isProgram }) => isProgram);

  it("compiles", () => {
    expect(programs).not.toEqual([]);
    compile(blocks, { noEmit: true });
  });

  it("compiles in comments of the public API, and runs where it needs no server", () => {
    expect(commented.length).toBeGreaterThan(40);
    compile(commented, { rootDir: ".", outDir: "examples" });
    const calls = commented
      .filter(({ isProgram }) => isProgram)
      .map(({ name }) => `await run((await import("./examples/${name}.js")).default);\n`);
    expect(calls.length).toBeGreaterThan(20);
    writeFileSync(join(folder, "examples.mjs"), `${GIVEN_AT_RUN_TIME}${calls.join("")}`);
    run("examples.mjs");
  });

  it("runs where it is whole", () => {
    compile(programs, { rootDir: ".", outDir: "out" });
    for (const { name } of programs) run(`out/${name}.js`);
  });
});

describe("links in the documentation", () => {
  it.each(documents)("of %s have a target", (document) => {
    const local = linksOf(read(document)).filter((link) => !/^https?:/.test(link));
    expect(local.filter((link) => !hasTarget(document, link))).toEqual([]);
  });
});

/** Whether the file exists and has the heading. */
function hasTarget(from: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const file = path === "" ? from : posix.join(dirname(from), path);
  if (!existsSync(join(root, file))) return false;
  if (anchor === undefined) return true;
  return headingsOf(read(file)).some((heading) => heading.anchor === anchor);
}
