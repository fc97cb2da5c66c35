/** Pages that exist in English and in Chinese: the Chinese one follows the English one. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { flawsOf } from "./fixtures/chinese-style.js";
import { blocksOf, headingsOf, linksOf, namesOf } from "./fixtures/markdown.js";

const root = join(import.meta.dirname, "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");

const pages = [
  { english: "README.md", chinese: "README.zh-CN.md" },
  ...readdirSync(join(root, "docs/zh")).map((name) => ({
    english: `docs/${name}`,
    chinese: `docs/zh/${name}`,
  })),
];

/** The page in Chinese where there is one. */
const inChinese = (file: string): string =>
  pages.find(({ english }) => english === file)?.chinese ?? file;

const fileOf = (page: string, link: string): string => {
  const [path = ""] = link.split("#");
  return path === "" ? page : posix.join(dirname(page), path);
};

/**
 * All targets of a page, each file in the given edition. Headings count by their place, since their
 * words differ. The link to the same page in the other language is left out.
 */
function targetsOf(page: string, other: string, editionOf: (file: string) => string): string[] {
  const targets = linksOf(read(page)).flatMap((link) => {
    if (/^https?:/.test(link)) return [link];
    const [, anchor] = link.split("#");
    const file = fileOf(page, link);
    if (file === other) return [];
    if (anchor === undefined) return [editionOf(file)];
    const place = headingsOf(read(file)).findIndex((heading) => heading.anchor === anchor);
    return [`${editionOf(file)}, heading ${place}`];
  });
  return targets.sort();
}

describe.each(pages)("$english and $chinese", ({ english, chinese }) => {
  it("have the same blocks of code", () => {
    expect(blocksOf(read(chinese))).toEqual(blocksOf(read(english)));
  });

  it("have headings of the same levels", () => {
    const levels = (file: string): number[] => headingsOf(read(file)).map(({ level }) => level);
    expect(levels(chinese)).toEqual(levels(english));
  });

  it("have the same pictures and links", () => {
    // A Chinese page names the Chinese edition of another page where there is one.
    const asIs = (file: string): string => file;
    expect(targetsOf(chinese, english, asIs)).toEqual(targetsOf(english, chinese, inChinese));
  });

  it("name the same options, calls and values in each section", () => {
    expect(namesOf(read(chinese))).toEqual(namesOf(read(english)));
  });

  it("have tables of the same size", () => {
    const rows = (file: string): number[] =>
      [...read(file).matchAll(/^\|.*\|$/gm)].map(([row]) => row.split("|").length);
    expect(rows(chinese)).toEqual(rows(english));
  });

  it("name each other at the top", () => {
    const first = (file: string): string => fileOf(file, linksOf(read(file))[0] ?? "");
    expect([first(english), first(chinese)]).toEqual([chinese, english]);
  });
});

describe("Chinese pages", () => {
  it.each(pages)("are well set: $chinese", ({ chinese }) => {
    expect(flawsOf(read(chinese))).toEqual([]);
  });

  it.each([
    ["no space between Chinese and Latin", "用Redis 加锁。"],
    ["no space between Chinese and Latin", "调用`run`。"],
    ["half-width punctuation", "锁, 租约。"],
    ["half-width punctuation", "| 锁 | 租约(lease) |"],
    ["a space beside full-width punctuation", "锁， 租约。"],
    ["a wrapped line", "第一行\n第二行"],
    ["emphasis that is not rendered", "**故障。**持有者被杀。"],
    ["emphasis that is not rendered", "它叫**“锁”**。"],
  ])("have a flaw, %s: %j", (flaw, text) => {
    expect(flawsOf(text).map((found) => found.split(": ")[0])).toContain(flaw);
  });

  it.each([
    "**故障。** 在 `DEL` 之前，*持有者*被杀（见[指南](guide.md#围栏令牌)）。",
    "```ts\nawait run(() => 锁);\n```",
    "- 一\n- 二，`x`、`y`\n\n| 锁 | `a, b` |\n|---|---|\n| 3 | 4 |",
  ])("have no flaw: %j", (text) => expect(flawsOf(text)).toEqual([]));
});
