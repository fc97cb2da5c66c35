import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { mutants } from "../simulation/mutants/list.js";
import { marksIn } from "../simulation/mutants/marks.js";
import { isPuzzling, sentencesOf } from "./fixtures/sentences.js";

const root = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

const OUTSIDE = new Set([".git", "node_modules", "dist", "build", "coverage"]);

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (OUTSIDE.has(entry.name) || /^\.(dist|build)-/.test(entry.name)) return [];
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const files = filesBelow("");
const code = files.filter((file) => /\.(ts|mjs|lua|sql)$/.test(file) && !/generated/.test(file));

/** Every line of the given files that the pattern matches, as `file:line`. */
function linesWith(pattern: RegExp, among: readonly string[]): string[] {
  return among.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1}`] : [])),
  );
}

describe("names", () => {
  it("say what a file is about", () => {
    const vague = /(^|\/)(utils?|helpers?|common|misc)(\.|\/|$)|(^|\/)(types|interfaces)\.ts$/;
    expect(code.filter((file) => vague.test(file))).toEqual([]);
  });

  it("are in kebab-case", () => {
    const kebab = /^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+)*$/;
    expect(code.filter((file) => !file.split("/").every((part) => kebab.test(part)))).toEqual([]);
  });
});

describe("lines", () => {
  it("have at most 100 columns", () => {
    expect(linesWith(/^.{101,}$/u, code)).toEqual([]);
  });

  it("leave nothing open and focus no test", () => {
    expect(linesWith(/\b(TO[D]O|FIX[M]E)\b/, code)).toEqual([]);
    expect(linesWith(/\b(it|test|describe)(\.\w+)*\.only\b/, code)).toEqual([]);
  });

  it("export public names one by one", () => {
    expect(linesWith(/^\s*export \*/, code)).toEqual([]);
  });

  it("name no package host and no folder of one machine", () => {
    const text = files.filter((file) => !/\.(png|jpg|gif|ico|db)$/.test(file));
    expect(linesWith(/\bregistry\.\w+\.\w|\bdeb\.debian\b|\bnode[s]ource\b/, text)).toEqual([]);
    expect(linesWith(/(?<![\w.$}])\/(home|root|Users|work|farm)\/\w/, text)).toEqual([]);
    expect(linesWith(/"resolved": "http/, ["package-lock.json"])).toEqual([]);
  });
});

describe("rules", () => {
  it("are marked once in the code, each with a mutant and a place in the architecture", () => {
    const sources = files.filter((file) => file.startsWith("src/") && file.endsWith(".ts"));
    const marks = sources.flatMap((file) => marksIn(read(file))).sort();
    const broken = mutants.flatMap(({ rule, also = [] }) => [rule, ...also.map((one) => one.rule)]);
    expect(marks).toEqual([...new Set(broken)].sort());
    const titles = mutants.map(({ title }) => title);
    expect(titles).toEqual([...new Set(titles)]);
    const rows = read("ARCHITECTURE.md").split("## Where each rule lives")[1]?.split("\n|") ?? [];
    const listed = rows.slice(3).flatMap((row) => row.split("|")[1]?.match(/[\w-]+/g) ?? []);
    expect(listed.sort()).toEqual(marks);
  });
});

describe("sentences", () => {
  const DOCUMENTS = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/decisions.md",
    "docs/guarantees.md",
  ];
  const puzzling = (file: string, text: string): string[] =>
    sentencesOf(file, text)
      .filter(isPuzzling)
      .map(({ line, text: sentence }) => `${file}:${line}: ${sentence}`);

  it("name their subject instead of who, whoever, what or nobody", () => {
    // This file has the sentences below.
    const written = code.filter((file) => {
      return (
        /^(src|simulation|test|bench|lab|scripts)\//.test(file) && file !== "test/tidy.test.ts"
      );
    });
    const found = [...written, ...DOCUMENTS].flatMap((file) => puzzling(file, read(file)));
    expect(found).toEqual([]);
  });

  it.each([
    ["a.ts", "/** Fine. Nobody holds it. */"],
    ["a.ts", "  // Whoever asks\n  // is told.\n"],
    ["a.ts", 'throw new Error("The lock is held. What now is up to you.");'],
    ["a.ts", 'it("who waits is served", () => {});'],
    ["a.lua", "-- What is left is dropped.\n"],
    ["a.md", "Fine.\n\n- *What remains*: a gap."],
  ])("of %s are found in %j", (file, text) => expect(puzzling(file, text)).toHaveLength(1));

  it.each([
    ["a.ts", "/** Who holds the lock? */"],
    ["a.ts", 'const kind = "what";'],
    ["a.md", "```\nWhat a program prints\n```\n"],
  ])("of %s may be a question, a word or code: %j", (file, text) => {
    expect(puzzling(file, text)).toEqual([]);
  });
});

describe("documentation", () => {
  const exported = Object.keys(JSON.parse(read("package.json")).exports);
  const stores = readdirSync(join(root, "src/stores")).filter((name) =>
    existsSync(join(root, "src/stores", name, "index.ts")),
  );

  it.each(stores)("and exports know the store %s", (name) => {
    expect(exported).toContain(`./${name}`);
    expect(files).toContain(`docs/stores/${name}.md`);
  });

  it("has exactly the error codes of the source", () => {
    const codes = (among: readonly string[]): string[] =>
      [...new Set(among.flatMap((file) => read(file).match(/\bHF_[A-Z_]+\b/g) ?? []))].sort();
    expect(codes(["docs/errors.md"])).toEqual(codes(filesBelow("src/errors")));
  });

  it("names files that exist", () => {
    const names = new Set(files.map((file) => file.slice(file.lastIndexOf("/") + 1)));
    const named = ["ARCHITECTURE.md", "CONTRIBUTING.md"].flatMap((file) => [
      ...read(file).matchAll(/(?<![\w<>*.-])[a-z][\w-]*\.(?:test\.)?(?:ts|mjs|lua|yml)\b/g),
    ]);
    expect(named.length).toBeGreaterThan(50);
    const missing = named.map(([name]) => name).filter((name) => !names.has(name));
    // The house rules forbid this one.
    expect(missing).toEqual(["types.ts"]);
  });

  it("has every option", () => {
    const options = [...read("src/options.ts").matchAll(/^ {2}(?:readonly )?(\w+)\?:/gm)];
    const names = options.map(([, name]) => `\`${name}\``);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !read("docs/options.md").includes(name))).toEqual([]);
  });
});

describe("imports", () => {
  const LAYERS = [
    { file: "src/connect.ts", down: ["./holdfast.js", "./stores/memory/index.js"], up: [] },
    {
      file: "src/locks/lock.ts",
      down: ["../lease/lease.js", "../store.js", "../options.js"],
      up: ["../holdfast.js", "../connect.js", "../stores/memory/index.js"],
    },
    {
      file: "src/lease/lease.ts",
      down: ["../store.js", "../options.js", "../events.js", "../time/clock.js"],
      up: ["../holdfast.js", "../locks/lock.js", "../stores/memory/index.js"],
    },
    {
      file: "src/store.ts",
      down: ["./rules/fits.js", "./errors.js"],
      up: ["./holdfast.js", "./locks/lock.js", "./lease/lease.js", "./stores/memory/index.js"],
    },
    {
      file: "src/stores/memory/index.ts",
      down: ["../../store.js", "../../errors.js", "../arbiter/channel.js", "../../rules/fits.js"],
      up: ["../../holdfast.js", "../../locks/lock.js", "../../lease/lease.js"],
    },
    {
      file: "src/stores/redlock/index.ts",
      down: ["../../store.js", "../redis-client/driver.js", "./ballot.js"],
      up: ["../redis/codec.js", "../arbiter/arbiter.js", "../../lease/lease.js"],
    },
    {
      file: "src/stores/redis-client/driver.ts",
      down: ["../../errors.js", "../../time/timers.js", "../store-url.js", "./ioredis.js"],
      up: ["../redis/codec.js", "../redlock/ballot.js", "../../lease/lease.js"],
    },
    {
      file: "src/rules/fits.ts",
      down: ["./token.js", "../time/clock.js"],
      up: ["../store.js", "../stores/memory/index.js", "../lease/lease.js", "../holdfast.js"],
    },
    { file: "src/time/clock.ts", down: ["./timers.js"], up: ["../store.js", "../lease/lease.js"] },
    { file: "src/lease/lease.test.ts", down: ["../stores/memory/index.js"], up: [] },
  ];

  it("of this test name files that exist", () => {
    const paths = LAYERS.flatMap(({ file, down, up }) => [
      file,
      ...[...down, ...up].map((path) => join(dirname(file), path.replace(/\.js$/, ".ts"))),
    ]);
    expect(paths.filter((path) => !files.includes(path))).toEqual([]);
  });

  it("go downward only, or the linter complains", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-tidy-"));
    try {
      cpSync(join(root, "biome.json"), join(folder, "biome.json"));
      for (const { file, down, up } of LAYERS) {
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        const imports = [...down, ...up].map((path) => `import "${path}";\n`);
        writeFileSync(join(folder, file), imports.join(""));
      }
      const biome = join(root, "node_modules/@biomejs/biome/bin/biome");
      const options = ["--only=style/noRestrictedImports", "--reporter=github"];
      const args = [biome, "lint", ...options, "--max-diagnostics=none"];
      const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });

      const complaints = [...stdout.matchAll(/file=[^,]*?(src\/[^,]+),line=(\d+),/g)];
      const expected = LAYERS.flatMap(({ file, down, up }) =>
        up.map((_, index) => `${file}:${down.length + index + 1}`),
      );
      expect(complaints.map(([, file, line]) => `${file}:${line}`).sort()).toEqual(expected.sort());
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
