/**
 * The text of docs/ladder.md is written by hand in ladder.md beside this file, and that of
 * docs/zh/ladder.md in ladder.zh.md. For each line `<!-- lab: KIND NAMES -->` the page has a part
 * from a source: a program, the lines that cure it, the picture of a trial, a way to wait, a price.
 * No program, picture or figure is typed in.
 */
import type { History } from "../history.js";
import type { Language } from "../languages/language.js";
import { type Prices, priceTable } from "../prices/prices.js";
import { difference, withoutPreface } from "./difference.js";
import { fileOf } from "./matrix-page.js";

export interface Sources {
  /** The text of a program of the ladder, by the id of its subject. */
  program(id: string): string;
  /** The text of a way to wait, by the name of its function. */
  way(name: string): string;
  history(subject: string, fault: string): History;
  readonly prices: Prices;
}

/** The parts of a page that depend on its language and its folder. */
export interface Edition {
  readonly language: Language;
  /** The folder of the pictures, as a link from the page. */
  readonly pictures: string;
}

const PART = /^<!-- lab: (\w+) (.*) -->$/gm;

export function filledIn(text: string, sources: Sources, edition: Edition): string {
  return text.replace(PART, (_, kind: string, names: string) => {
    return partOf(kind, names.split(" "), sources, edition);
  });
}

function partOf(
  kind: string,
  names: readonly string[],
  sources: Sources,
  edition: Edition,
): string {
  const [first = "", second = "", ...rest] = names;
  switch (kind) {
    case "program":
      return block("ts sketch", sources.program(first));
    case "way":
      return block("ts sketch", sources.way(first));
    case "cure":
      return cure(sources.program(first), sources.program(second));
    case "picture":
      return picture(sources.history(first, second), rest.join(" "), edition);
    case "price":
      return price(first, sources.prices, edition.language);
    default:
      throw new Error(`The ladder has no parts of the kind "${kind}".`);
  }
}

function block(language: string, text: string): string {
  return `\`\`\`${language}\n${text.replace(/\n$/, "")}\n\`\`\``;
}

/** Lines that differ, with two lines around them. */
function cure(before: string, after: string): string {
  const lines = difference(withoutPreface(before), withoutPreface(after));
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - 2), index + 3).some(({ sign }) => sign !== " ");
  const shown = lines.flatMap(({ sign, text }, index) =>
    isNear(index) ? [`${sign} ${text}`.trimEnd()] : [],
  );
  return block("diff", shown.join("\n"));
}

/** The text around a picture relies on a verdict: a trial with another one must not stand there. */
function picture(history: History, expected: string, edition: Edition): string {
  const { subject, fault, subjectTitle, faultTitle, verdict, command } = history;
  if (verdict.kind !== expected) {
    const found = `The verdict of ${subject} and ${fault} is "${verdict.kind}"`;
    throw new Error(`${found}, but the text of the ladder relies on "${expected}".`);
  }
  const { language, pictures } = edition;
  const { say, caption } = language;
  const alternative = caption(say(subjectTitle), say(faultTitle), say(verdict.text));
  return `![${alternative}](${pictures}/${fileOf(history)}.svg)\n\n\`${command}\``;
}

function price(name: string, prices: Prices, language: Language): string {
  const found = prices.prices.find((one) => one.name === name);
  if (!found) throw new Error(`There is no price "${name}".`);
  return priceTable(found, prices, language);
}

/** The text of one function, from the comment before it to its last line. */
export function functionIn(source: string, name: string): string {
  const parts = source.split(/^(?=\/\*\*)/m);
  const part = parts.find((one) =>
    new RegExp(`^(export )?(async )?function ${name}\\b`, "m").test(one),
  );
  if (part === undefined) throw new Error(`There is no function ${name}.`);
  return part.slice(0, part.indexOf("\n}\n") + 3);
}
