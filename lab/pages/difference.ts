/** A line of two texts: in both, only in the first, or only in the second. */
export interface DifferenceLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

/**
 * The shortest way from one text to the other, line by line. The texts are programs of a page: a
 * table of all pairs of lines is small.
 */
export function difference(before: string, after: string): DifferenceLine[] {
  const [old, young] = [linesOf(before), linesOf(after)];
  // common[i][j]: how many lines the rest of the old from i and of the new from j have in common.
  const common = old.map(() => new Array<number>(young.length + 1).fill(0));
  const at = (i: number, j: number): number => common[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1) {
    const row = common[i] ?? [];
    for (let j = young.length - 1; j >= 0; j -= 1) {
      row[j] = old[i] === young[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const lines: DifferenceLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < young.length) {
    const [was = "", is = ""] = [old[i], young[j]];
    if (i < old.length && j < young.length && was === is) {
      lines.push({ sign: " ", text: was });
      i += 1;
      j += 1;
    } else if (j >= young.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ sign: "-", text: was });
      i += 1;
    } else {
      lines.push({ sign: "+", text: is });
      j += 1;
    }
  }
  return lines;
}

/** The program without the comment at its top, which says what is wrong with it. */
export function withoutPreface(source: string): string {
  return source.replace(/^\/\*\*[\s\S]*?\*\/\n/, "");
}

function linesOf(text: string): string[] {
  return text.replace(/\n$/, "").split("\n");
}
