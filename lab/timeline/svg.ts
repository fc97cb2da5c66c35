import type { VerdictKind } from "../history.js";

/**
 * Widths of text without a renderer. The estimate is that of a wide font (DejaVu Sans), so that
 * text fits in the narrower ones, too.
 */
const KINDS: readonly (readonly [letters: RegExp, width: number])[] = [
  [/[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60]/u, 1.05],
  [/\p{Extended_Pictographic}/u, 1.3],
  [/[MWmw@%]/, 1],
  [/[—…→←⇒]/, 1],
  [/[ijl.,:;'’|! ]/, 0.35],
  [/[frt()[\]\-·/"]/, 0.43],
  [/[A-Z&+=<>~×]/, 0.8],
];
const OTHER = 0.65;
const BOLD = 1.12;

export interface Font {
  readonly size: number;
  readonly isBold?: boolean;
}

export function widthOf(text: string, { size, isBold = false }: Font): number {
  const units = Array.from(text, (letter) => {
    return KINDS.find(([letters]) => letters.test(letter))?.[1] ?? OTHER;
  });
  return units.reduce((sum, unit) => sum + unit, 0) * size * (isBold ? BOLD : 1);
}

/** The text, or as much of it as fits, with an ellipsis. */
export function shortened(text: string, font: Font, most: number): string {
  if (widthOf(text, font) <= most) return text;
  const letters = [...text];
  while (letters.length > 0 && widthOf(`${letters.join("")}…`, font) > most) letters.pop();
  return `${letters.join("").trimEnd()}…`;
}

/** The words in lines that fit; a word that is too long for a line of its own is shortened. */
export function wrapped(text: string, font: Font, most: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    const longer = last === undefined ? word : `${last} ${word}`;
    if (last !== undefined && widthOf(longer, font) <= most) lines[lines.length - 1] = longer;
    else lines.push(shortened(word, font, most));
  }
  return lines;
}

type Value = string | number | undefined;

/** One element; attributes without a value are left out, numbers are rounded to a tenth. */
export function element(
  name: string,
  attributes: Readonly<Record<string, Value>>,
  ...content: readonly string[]
): string {
  const words = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [` ${key}="${escaped(typeof value === "number" ? tenth(value) : value)}"`],
  );
  const start = `<${name}${words.join("")}`;
  return content.length === 0 ? `${start}/>` : `${start}>${content.join("")}</${name}>`;
}

/** Text for XML and HTML. A character that XML cannot carry becomes a replacement sign. */
export function escaped(text: string): string {
  return text
    .replace(UNWRITABLE, "\uFFFD")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids exactly these
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;

/** Numbers in a picture: a tenth of a pixel is enough, and the same on every machine. */
export function tenth(value: number): string {
  return String(Math.round(value * 10) / 10);
}

/** The colours of all pictures of the lab, in both themes. */
const LIGHT_AND_DARK = {
  page: ["#ffffff", "#0d1117"],
  text: ["#1f2328", "#e6edf3"],
  dim: ["#59636e", "#9198a1"],
  grid: ["#d1d9e0", "#3d444d"],
  holder: ["#0969da", "#4493f8"],
  clash: ["#cf222e", "#f85149"],
  fault: ["#9a6700", "#d29922"],
  store: ["#1a7f37", "#3fb950"],
} as const;

export type Ink = keyof typeof LIGHT_AND_DARK;

/** The colour of an attribute `fill` or `stroke`. */
export const colour = (ink: Ink): string => LIGHT_AND_DARK[ink][0];

/**
 * The dark theme replaces the value of each attribute that the picture has. A renderer without CSS
 * shows the light theme, and one without CSS variables, which several viewers are, shows both.
 */
export function darkOf(markup: string): string {
  const rules = Object.values(LIGHT_AND_DARK).flatMap(([light, dark]) =>
    ["fill", "stroke"]
      // The page itself is filled in every picture.
      .filter((name) => light === colour("page") || markup.includes(`${name}="${light}"`))
      .map((name) => `[${name}="${light}"] { ${name}: ${dark}; }`),
  );
  return `@media (prefers-color-scheme: dark) {\n${rules.join("\n")}\n}`;
}

/** A verdict that a lock may have. */
export const isGood = (kind: VerdictKind): boolean => kind === "held" || kind === "told in time";
