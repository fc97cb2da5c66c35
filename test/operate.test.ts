import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Registry } from "prom-client";
import { beforeAll, describe, expect, it } from "vitest";
import { labelsOf, METRICS } from "../src/telemetry/metrics.js";
import { startMetrics } from "../src/telemetry/prometheus/index.js";
import { isFull } from "./fixtures/depth.js";
import { LockTrial } from "./fixtures/lock-trial.js";
import { parseScrape } from "./fixtures/prometheus-text.js";

const root = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const RULES = "docs/operate/alerts.yml";

/** The parser that the check for unused code brings along. */
const { parse } = createRequire(join(root, "node_modules/knip/package.json"))("yaml");

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly description: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; h: number };
  readonly targets: readonly { readonly expr: string }[];
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: { readonly summary: string; readonly description: string };
}

const board = JSON.parse(read("docs/operate/grafana.json"));
const panels: readonly Panel[] = board.panels;
const rules: readonly Rule[] = parse(read(RULES)).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
);
const variables: readonly { name: string; definition?: string }[] = board.templating.list;
const expressions: readonly string[] = [
  ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
  ...rules.map(({ expr }) => expr),
  ...variables.flatMap(({ definition }) => definition ?? []),
  ...[...read("docs/runbook.md").matchAll(/^ *```promql\n([\s\S]*?)^ *```$/gm)].map(
    ([, code = ""]) => code.trim(),
  ),
];

/** The labels that Prometheus adds to all that it scrapes. */
const ADDED = ["job", "instance"];

/** Names of samples in a scrape, with the values of each of their labels. */
const scraped = new Map<string, Map<string, Set<string>>>();

beforeAll(async () => {
  const registry = new Registry();
  using metrics = startMetrics({ registry });
  const { locks } = new LockTrial();
  for (const lock of [locks.mutex("x"), locks.readWrite("y").read, locks.semaphore("s", 2)]) {
    await (await lock.acquire()).release();
  }
  await locks.election("e").lead(() => {});
  for (const { samples } of parseScrape(await registry.metrics()).values()) {
    for (const { name, labels } of samples) {
      const known = scraped.get(name) ?? new Map<string, Set<string>>();
      scraped.set(name, known);
      for (const [label, value] of Object.entries(labels)) {
        known.set(label, (known.get(label) ?? new Set()).add(value));
      }
    }
  }
  expect(metrics).toBeDefined();
});

describe("every expression of the board and the rules", () => {
  it.each(expressions)("names samples of a scrape: %s", (expression) => {
    const selectors = [...expression.matchAll(/\b(holdfast_\w+)(?:\{([^}]*)\})?/g)];
    expect(selectors).not.toEqual([]);
    for (const [, name = "", matchers = ""] of selectors) {
      const labels = scraped.get(name);
      expect(labels, name).toBeDefined();
      for (const [, label = "", value = ""] of matchers.matchAll(/(\w+)[!=]~?"([^"]*)"/g)) {
        if (ADDED.includes(label)) continue;
        expect([...(labels?.keys() ?? [])], `${name}{${label}}`).toContain(label);
        const words = value.startsWith("$") ? [] : value.split("|");
        expect([...(labels?.get(label) ?? [])]).toEqual(expect.arrayContaining(words));
      }
    }
    const names = selectors.map(([, name = ""]) => name);
    for (const [, list = ""] of expression.matchAll(/by \(([^)]*)\)/g)) {
      for (const label of list.split(", ").filter((one) => !ADDED.includes(one))) {
        expect(names.some((name) => scraped.get(name)?.has(label))).toBe(true);
      }
    }
  });
});

describe("the board", () => {
  it("shows every metric", () => {
    const text = JSON.stringify(panels);
    const names = Object.values(METRICS).map(({ name }) => name.replaceAll(".", "_"));
    expect(names.filter((name) => !text.includes(name))).toEqual([]);
  });

  it("has panels that say what they show, and do not overlap", () => {
    const places = new Set<string>();
    for (const { title, description, gridPos } of panels) {
      expect(title.length * description.length).toBeGreaterThan(0);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        expect(x).toBeLessThan(24);
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(places).not.toContain(`${x} ${y}`);
          places.add(`${x} ${y}`);
        }
      }
    }
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });

  it("uses the variables that it has", () => {
    const used = [...JSON.stringify(board).matchAll(/\$\{?([a-z]+)\b/g)].map(([, name]) => name);
    expect([...new Set(used)].sort()).toEqual(variables.map(({ name }) => name).sort());
  });
});

describe("the documentation", () => {
  const page = read("docs/operate.md");

  it("has a row for every metric, with its unit and labels", () => {
    for (const metric of Object.values(METRICS)) {
      const row = page.split("\n").find((line) => line.startsWith(`| \`${metric.name}\``));
      expect(row, metric.name).toBeDefined();
      const labels = labelsOf(metric, false).map((label) => `\`${label}\``);
      expect(row).toContain(`| ${labels.join(", ")} |`);
      const unit = metric.unit === "s" ? "seconds" : metric.unit === "1" ? "ratio" : "count";
      expect(row).toContain(`| ${unit} |`);
      for (const value of metric.by?.values ?? []) expect(page).toContain(`\`${value}\``);
    }
    for (const name of scraped.keys()) {
      expect(page).toContain(name.replace(/_(bucket|sum|count)$/, ""));
    }
  });

  it("explains every rule", () => {
    for (const { alert, annotations } of rules) {
      expect(page).toContain(`\`${alert}\``);
      expect(annotations.description).not.toBe("");
    }
  });
});

const hasPromtool = spawnSync("promtool", ["--version"]).status === 0;

// The rules themselves need the package `prometheus`.
it.skipIf(!isFull || !hasPromtool)("the rules fire when they should", () => {
  const trials = join(root, "test/fixtures/alert-trials.yml");
  for (const args of [
    ["check", "rules", join(root, RULES)],
    ["test", "rules", trials],
  ]) {
    const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8" });
    expect(status, stdout + stderr).toBe(0);
  }
});
