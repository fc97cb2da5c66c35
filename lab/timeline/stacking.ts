/** A text that begins at a point of the time line, with a pole down to its lane. */
export interface Label {
  readonly x: number;
  readonly width: number;
}

const GAP = 6;

/**
 * The row of each label above its lane, 0 the lowest, so that no text covers another text or the
 * pole of another label. Labels come in the order of time, and text goes to the right of its pole.
 *
 * From right to left: a text that reaches to the pole of a later label stands above that label. Its
 * own pole is to the left of the later text and cannot cross it.
 */
export function stacked(labels: readonly Label[]): number[] {
  const rows = labels.map(() => 0);
  for (let at = labels.length - 1; at >= 0; at -= 1) {
    const { x = 0, width = 0 } = labels[at] ?? {};
    const covered = rows.filter((_, later) => {
      return later > at && (labels[later]?.x ?? 0) < x + width + GAP;
    });
    rows[at] = Math.max(-1, ...covered) + 1;
  }
  return rows;
}
