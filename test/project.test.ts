import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { VERBS } from "../src/cli/verbs.js";
import { commandsOf } from "./fixtures/markdown.js";

const root = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const { version, scripts, engines } = JSON.parse(read("package.json"));

/** The parser that the check for unused code brings along. */
const { parse } = createRequire(join(root, "node_modules/knip/package.json"))("yaml");

interface Job {
  readonly strategy?: { readonly matrix: { readonly node: readonly number[] } };
  readonly uses?: string;
  readonly steps?: readonly { readonly run?: string; readonly uses?: string }[];
}

const namesIn = (folder: string): string[] =>
  readdirSync(join(root, folder)).map((name) => `${folder}/${name}`);

function jobsOf(workflow: string): Job[] {
  return Object.values(parse(read(workflow)).jobs as Record<string, Job>);
}

describe.each(namesIn(".github/workflows"))("%s", (workflow) => {
  const commands = jobsOf(workflow).flatMap(({ steps = [] }) =>
    steps.flatMap(({ run }) => run ?? []),
  );

  it("names scripts that exist", () => {
    const named = commands.flatMap((command) => [
      ...[...command.matchAll(/npm run ([\w:]+)/g)].map(([, name = ""]) => scripts[name]),
      ...[...command.matchAll(/\bscripts\/[\w-]+\.mjs/g)].map(([file]) =>
        existsSync(join(root, file)),
      ),
    ]);
    expect(commands).not.toEqual([]);
    expect(named.every(Boolean)).toBe(true);
  });
});

it("runs all tests on every supported version of Node", () => {
  const jobs = jobsOf(".github/workflows/test.yml");
  const least = Number(/^>=(\d+)/.exec(engines.node)?.[1]);
  for (const { strategy, steps = [] } of jobs) {
    expect(strategy?.matrix.node).toEqual([20, 22, 24, 26]);
    expect(strategy?.matrix.node[0]).toBe(least);
    expect(steps.at(-1)).toEqual({ run: "npm test -- --all" });
  }
  expect(jobs.length).toBe(2);
});

it.each(namesIn(".github/workflows"))("pins every action by its commit: %s", (workflow) => {
  const lines = read(workflow).match(/uses: .*/g) ?? [];
  const foreign = lines.filter((line) => !line.includes("uses: ./"));
  expect(foreign).not.toEqual([]);
  expect(foreign.filter((line) => !/@[\da-f]{40} # v\d+\.\d+\.\d+$/.test(line))).toEqual([]);
});

it("publishes after the whole test run alone, with a list of what the package brings", () => {
  const { jobs } = parse(read(".github/workflows/release.yml"));
  expect(jobs.test).toEqual({ uses: "./.github/workflows/test.yml" });
  expect(jobs.publish.needs).toBe("test");
  expect(jobs.announce.needs).toBe("publish");
  const commands = jobs.announce.steps.map(({ run = "" }: { run?: string }) => run).join("\n");
  expect(commands).toMatch(/npm sbom .*> (\S+)\n.*gh release create .* \1/);
});

describe("the check before npm publish", () => {
  const check = (manifest: object): string => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-manifest-"));
    const file = join(folder, "package.json");
    writeFileSync(file, JSON.stringify(manifest));
    const program = join(root, "scripts/check-addresses.mjs");
    const { stderr, status } = spawnSync(process.execPath, [program, file]);
    rmSync(folder, { recursive: true });
    return `${status} ${stderr}`;
  };
  const real = {
    homepage: "https://example.com/holdfast",
    repository: { url: "git+https://example.com/holdfast.git" },
    bugs: { url: "https://example.com/holdfast/issues" },
  };

  it("is run by npm", () => {
    expect(scripts.prepublishOnly).toContain("scripts/check-addresses.mjs");
  });

  it("accepts real addresses", () => {
    expect(check(real)).toBe("0 ");
  });

  it("refuses missing ones and placeholders", () => {
    expect(check({ ...real, bugs: undefined })).toMatch(/^1 .* for: bugs\./);
    const placeholder = { url: "git+https://placeholder.invalid/holdfast.git" };
    expect(check({ ...real, repository: placeholder })).toMatch(/^1 .* for: repository\./);
  });
});

it("asks in a report of a bug for all that is needed to repeat it", () => {
  const { body } = parse(read(".github/ISSUE_TEMPLATE/bug.yml"));
  const fields = body.filter(({ id }: { id?: string }) => id !== undefined);
  expect(fields.map(({ id }: { id: string }) => id)).toEqual([
    "happened",
    "program",
    "store",
    "versions",
    "state",
  ]);
  const stores = readdirSync(join(root, "docs/stores")).map((name) => name.replace(".md", ""));
  const offered = fields.find(({ id }: { id: string }) => id === "store").attributes.options;
  expect(offered.filter((name: string) => !name.includes(" ")).sort()).toEqual(stores.sort());
});

it("offers templates that can be read", () => {
  for (const file of namesIn(".github/ISSUE_TEMPLATE"))
    expect(parse(read(file))).toBeTypeOf("object");
});

describe("commands in the documentation", () => {
  const pages = [".", "docs", "docs/stores", "docs/zh", "examples", "simulation"]
    .flatMap(namesIn)
    // The page of mistakes has commands that are wrong.
    .filter((file) => file.endsWith(".md") && !file.endsWith("/mistakes.md"));

  it.each(pages)("exist: %s", async (page) => {
    for (const { program, verb, options } of commandsOf(read(page))) {
      if (program === "npm run") {
        expect(scripts).toHaveProperty([verb]);
        continue;
      }
      expect(VERBS).toHaveProperty([verb]);
      const { options: known } = await (VERBS[verb] as (typeof VERBS)[string]).load();
      const all = [...Object.keys(known), "store", "json", "quiet", "verbose", "help"];
      expect(options.filter((option) => !all.includes(option))).toEqual([]);
    }
  });

  it("are found in blocks and in lines", () => {
    const text =
      "Type `holdfast list --deadlocks`, or:\n\n```\n0 3 * * *  holdfast run -n a -- b --x\n```\n";
    expect(commandsOf(text)).toEqual([
      { program: "holdfast", verb: "run", options: [] },
      { program: "holdfast", verb: "list", options: ["deadlocks"] },
    ]);
    expect(commandsOf("`npm run bench -- redis`, `the schema holdfast is missing`")).toEqual([
      { program: "npm run", verb: "bench", options: [] },
    ]);
  });
});

it("has a changelog whose newest section is the version of the package", () => {
  const [, newest = ""] = /^## (.*)$/m.exec(read("CHANGELOG.md")) ?? [];
  expect(newest.replace(/^Unreleased: /, "").split(",")[0]).toBe(version);
});
