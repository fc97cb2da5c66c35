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
