/** One lane of the picture: a bar, and the words above it. */

import type { Scale } from "./scale.js";
import type { Note, ProcessLane } from "./scene.js";
import {
  BAR,
  cross,
  dashed,
  diamond,
  dotted,
  type Extent,
  hollow,
  pale,
  pole,
  RING,
  SMALLEST,
  solid,
  text,
} from "./signs.js";
import type { Ink } from "./svg.js";
import { type Font, shortened, widthOf } from "./svg.js";
import type { Truth } from "./truths.js";
import { common, type Span, without } from "./truths.js";

export const TITLE: Font = { size: 13, isBold: true };
export const NOTE: Font = { size: SMALLEST };
const ROW = 15;
/** From a pole to its word. */
const BEFORE = 11;
/** Time becomes shorter so that a note of this width fits. It is longer where there is room. */
const MAX_NOTE = 300;
const ROOMIEST_NOTE = 460;

/** The words of a lane in rows, and where its bar is. */
export interface Place {
  readonly top: number;
  readonly middle: number;
  readonly bottom: number;
  readonly notes: readonly (Note & { readonly x: number; readonly row: number })[];
}

/** The width of a note with its pole, if it is no longer than it must be. */
export const leastWidth = ({ text: words }: Note): number =>
  BEFORE + widthOf(shortened(words, NOTE, MAX_NOTE), NOTE);

export function placeOf(notes: readonly Note[], top: number, scale: Scale): Place {
  const labels = notes.map((note) => {
    const x = scale.x(note.atMs);
    const room = Math.min(ROOMIEST_NOTE, scale.edge - x - BEFORE);
    const words = shortened(note.text, NOTE, Math.max(MAX_NOTE, room));
    return { ...note, x, text: words, width: BEFORE + widthOf(words, NOTE) };
  });
  const rows = stacked(labels);
  const bar = top + (Math.max(-1, ...rows) + 1) * ROW + 4;
  return {
    top: bar,
    middle: bar + BAR / 2,
    bottom: bar + BAR,
    notes: labels.map((label, index) => ({ ...label, row: rows[index] ?? 0 })),
  };
}

export function processLane(
  lane: ProcessLane,
  place: Place,
  scale: Scale,
  clashes: readonly Span[],
): string {
  const y = place.middle;
  const extent = (span: Span): Extent => extentOf(span, scale);
  const red = lane.works.flatMap((work) => clashes.flatMap((clash) => common(work, clash) ?? []));
  return [
    laneTitle(lane.title, place, scale),
    ...lane.waits.flatMap((span) => {
      // The bar that begins at once would cover half of the ring.
      const isAtOnce = lane.beliefs.some(({ fromMs }) => fromMs === span.toMs);
      return isAtOnce && extent(span).width < RING ? [] : dotted(extent(span), y);
    }),
    ...lane.beliefs.map((span) => hollow(extent(span), y, "holder")),
    ...lane.works.map((span) => solid(extent(span), y, "holder")),
    ...red.map((span) => solid(extent(span), y, "clash")),
    ...[...without(lane.works, red), ...red].map((span) => {
      return inside(["works"], extent(span), y, "page");
    }),
    ...lane.stops.map((span) => {
      return (
        dashed(extent(span), y) +
        inside(span.text === "stopped" ? ["stopped"] : [], extent(span), y, "fault")
      );
    }),
    ...lane.writesAtMs.map((atMs) => diamond(scale.x(atMs), y)),
    ...lane.killedAtMs.map((atMs) => cross(scale.x(atMs), y)),
    words(place),
  ].join("\n");
}

export function storeLane(truths: readonly Truth[], place: Place, scale: Scale): string {
  const silence = "the store does not say which process holds the lock";
  return [
    laneTitle("store", place, scale),
    truths.length === 0 ? text(silence, scale.left + 8, place.middle + 4, "dim", NOTE) : "",
    ...truths.map((truth) => {
      const { holder, id, token, isGhost, doubts } = truth;
      const ink = isGhost ? "clash" : "store";
      const longest = token === undefined ? [] : [`held by ${holder}, token ${token}`];
      const extent = extentOf(truth, scale);
      const texts = isGhost ? [holder] : [...longest, `held by ${holder}`, holder, id];
      return [
        ...doubts.map((doubt) => pale(extentOf(doubt, scale), place.middle, ink)),
        hollow(extent, place.middle, ink),
        inside(texts, extent, place.middle, ink),
      ].join("");
    }),
    words(place),
  ].join("\n");
}

export function extentOf(
  { fromMs, toMs, isOpen = false }: Span & Pick<Extent, "isOpen">,
  scale: Scale,
): Extent {
  const x = scale.x(fromMs);
  return { x, width: scale.x(toMs) - x, isOpen };
}

function laneTitle(title: string, { middle }: Place, { left }: Scale): string {
  return text(title, left - 14, middle + 5, "text", TITLE, "end");
}

/** The first of the texts that fits between the edges. */
function inside(texts: readonly string[], { x, width }: Extent, y: number, ink: Ink): string {
  const fitting = texts.find((words) => widthOf(words, NOTE) + 8 <= width);
  return fitting ? text(fitting, x + width / 2, y + 4, ink, NOTE, "middle") : "";
}

function words({ top, notes }: Place): string {
  return notes
    .map(({ text: note, x, row, ink, isFlag }) => {
      const baseline = top - 6 - row * ROW;
      const sign = pole(x, baseline - 9, top, ink, isFlag);
      return sign + text(note, x + BEFORE, baseline, ink, NOTE);
    })
    .join("\n");
}

/** A text that begins at a point of the time line, with a pole down to its lane. */
interface Label {
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
function stacked(labels: readonly Label[]): number[] {
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
