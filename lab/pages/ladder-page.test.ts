import { expect, it } from "vitest";
import { chinese } from "../languages/chinese.js";
import { english } from "../languages/language.js";
import { stoppedHolder } from "../timeline/example-histories.js";
import { type Edition, filledIn, functionIn, type Sources } from "./ladder-page.js";

const PROGRAMS: Record<string, string> = {
  "rung-2": "/** Rung 2. */\na\nb\nc\nd\nlock();\ndel();\n",
  "rung-3": "/** Rung 3. */\na\nb\nc\nd\nlock();\ncad();\n",
};

const sources: Sources = {
  program: (id) => PROGRAMS[id] ?? "",
  way: (name) => `export function ${name}() {}\n`,
  history: () => stoppedHolder,
  prices: {
    takenAt: "2026-11-17T00:00:00.000Z",
    machine: "2 cores",
    load: { before: 0.1, after: 0.2 },
    versions: { redis: "7.0.15" },
    prices: [
      {
        name: "nodes",
        title: "the price of a majority",
        about: "Here.",
        unit: "µs/pair",
        rows: [
          { name: "one", median: 200, spread: 0.1 },
          { name: "five", median: 500, spread: 0.051 },
          { name: "noisy", median: 250, spread: 0.4 },
        ],
      },
    ],
  },
};

const edition: Edition = { language: english, pictures: "ladder" };

const part = (name: string): string => `before\n<!-- lab: ${name} -->\nafter\n`;

it("replaces a part, and nothing else", () => {
  const filled = filledIn(part("program rung-2"), sources, edition);
  expect(filled).toMatch(/^before\n```ts sketch\n\/\*\* Rung 2[\s\S]*del\(\);\n```\nafter\n$/);
  expect(filledIn("no part\n", sources, edition)).toBe("no part\n");
});

it("shows a way to wait", () => {
  expect(filledIn(part("way spin"), sources, edition)).toContain(
    "```ts sketch\nexport function spin() {}\n```",
  );
});

it("finds the functions of a source, with the comments before them", () => {
  const source =
    "/** One. */\nfunction one() {\n  x;\n}\n\n/** Two. */\nexport async function two() {\n}\n";
  expect(functionIn(source, "two")).toBe("/** Two. */\nexport async function two() {\n}\n");
  expect(functionIn(source, "one")).toBe("/** One. */\nfunction one() {\n  x;\n}\n");
  expect(() => functionIn(source, "three")).toThrow("no function three");
});

it("shows the lines that cure a program, with two lines around them", () => {
  expect(filledIn(part("cure rung-2 rung-3"), sources, edition)).toContain(
    "```diff\n  d\n  lock();\n- del();\n+ cad();\n```",
  );
});

it("shows a picture with its words and its command", () => {
  const filled = filledIn(part("picture rung-2 stopped-holder two held"), sources, edition);
  expect(filled).toContain("](ladder/rung-2.stopped-holder.svg)");
  expect(filled).toContain("stopped past its ttl: two worked at once for 3.1 s]");
  expect(filled).toContain("`npm run lab -- rung-2 stopped-holder`");
});

it("refuses a picture whose verdict is not the one that the text relies on", () => {
  expect(() => filledIn(part("picture rung-2 stopped-holder held"), sources, edition)).toThrow(
    'The verdict of rung-2 and stopped-holder is "two held", but the text of the ladder relies on',
  );
});

it("shows a price with its spread, and as a multiple of the first row", () => {
  const filled = filledIn(part("price nodes"), sources, edition);
  expect(filled).toContain("| one | 200 | 10 % | 1 |\n| five | 500 | 5 % | 2.5 |");
  expect(filled).toContain("taken 2026-11-17 on 2 cores, load 0.1 to 0.2.");
});

it("does not compare rows that differ by less than their spread", () => {
  expect(filledIn(part("price nodes"), sources, edition)).toContain(
    "| noisy | 250 | 40 % | within the spread |",
  );
});

it("refuses a part that it does not know", () => {
  expect(() => filledIn(part("poem rung-2"), sources, edition)).toThrow(
    'no parts of the kind "poem"',
  );
  expect(() => filledIn(part("price poem"), sources, edition)).toThrow('no price "poem"');
});

it("says captions and prices in the language of the page", () => {
  const history = { ...stoppedHolder, subjectTitle: "Rung 5: a watchdog" };
  const verdict = { kind: "two held", ms: 7, text: "two held for 7 ms" } as const;
  const fault = { faultTitle: "the holder is killed", verdict };
  const known = {
    ...sources,
    history: () => ({ ...history, ...fault }),
    prices: {
      ...sources.prices,
      prices: [
        {
          name: "nodes",
          title: "what a majority costs",
          about: "All nodes are on the same machine and are asked at the same time.",
          unit: "µs/pair",
          rows: [
            { name: "one node", median: 200, spread: 0.1 },
            { name: "five nodes", median: 210, spread: 0.1 },
          ],
        },
      ],
    },
  };
  const zh: Edition = { language: chinese, pictures: "../ladder" };
  expect(filledIn(part("picture rung-5 killed-holder two held"), known, zh)).toContain(
    "![层次 5：看门狗。持有者被杀：两个进程同时持有 7 毫秒](../ladder/",
  );
  expect(filledIn(part("price nodes"), known, zh)).toContain(
    "| 五个节点 | 210 | 10 % | 差异小于离散度 |",
  );
  expect(() => filledIn(part("price nodes"), sources, zh)).toThrow('no Chinese phrase for "one"');
});
