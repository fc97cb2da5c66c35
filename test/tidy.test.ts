import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { mutants } from "../simulation/mutants/list.js";
import { marksIn } from "../simulation/mutants/marks.js";

const root = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

const OUTSIDE = new Set([".git", "node_modules", "dist", "build", "coverage"]);

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (OUTSIDE.has(entry.name) || /^\.(dist|build)-|\.generated\.ts/.test(entry.name)) return [];
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}

const files = filesBelow("");
const code = files.filter((file) => /\.(ts|mjs|lua|sql)$/.test(file));

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
  it("are marked once in the code, each with a mutant", () => {
    const sources = files.filter((file) => file.startsWith("src/") && file.endsWith(".ts"));
    const marks = sources.flatMap((file) => marksIn(read(file))).sort();
    const broken = mutants.flatMap(({ rule, also = [] }) => [rule, ...also.map((one) => one.rule)]);
    expect(marks).toEqual([...new Set(broken)].sort());
    const titles = mutants.map(({ title }) => title);
    expect(titles).toEqual([...new Set(titles)]);
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
    expect(named.length).toBeGreaterThan(20);
    const missing = named.map(([name]) => name).filter((name) => !names.has(name));
    // The house rules forbid this one.
    expect(missing).toEqual(["types.ts"]);
  });

  it("has every option", () => {
    const options = [...read("src/options/options.ts").matchAll(/^ {2}(?:readonly )?(\w+)\?:/gm)];
    const names = options.map(([, name]) => `\`${name}\``);
    expect(names).not.toEqual([]);
    expect(names.filter((name) => !read("docs/options.md").includes(name))).toEqual([]);
  });
});
