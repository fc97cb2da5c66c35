/** The signs of the picture; lanes and legend draw them alike. `y` is the middle of a bar. */

import type { Font } from "./svg.js";
import { colour, element, escaped, type Ink, tenth } from "./svg.js";

export const BAR = 26;
/** The size of most texts: the picture has it as its own, and they do not repeat it. */
export const SMALLEST = 11;
/** A sign is at least this wide, however short its time. */
const LEAST = 2;
/** The radius of the corners of a bar. */
const ROUND = 3;

export interface Extent {
  readonly x: number;
  readonly width: number;
  /** Default: `BAR`. */
  readonly height?: number;
  /** The end of the trial cut it off. */
  readonly isOpen?: boolean;
}

type Anchor = "start" | "middle" | "end";

export function text(
  words: string,
  x: number,
  y: number,
  ink: Ink,
  { size, isBold = false }: Font,
  anchor: Anchor = "start",
): string {
  return element(
    "text",
    {
      x,
      y,
      fill: colour(ink),
      "font-size": size === SMALLEST ? undefined : size,
      "font-weight": isBold ? 600 : undefined,
      "text-anchor": anchor === "start" ? undefined : anchor,
    },
    escaped(words),
  );
}

/** Hollow: a belief, or the truth of the store. Without a right edge where the time goes on. */
export function hollow(extent: Extent, y: number, ink: Ink): string {
  const { x, width, height = BAR, isOpen = false } = extent;
  const wide = Math.max(LEAST, width);
  const line = { fill: "none", stroke: colour(ink), "stroke-width": 2 };
  if (!isOpen) {
    return element("rect", { x, y: y - height / 2, width: wide, height, rx: ROUND, ...line });
  }
  const start = `M${tenth(x + wide)} ${tenth(y - height / 2)}H${tenth(x + ROUND)}`;
  const corner = (down: number, right: number): string =>
    `a${ROUND} ${ROUND} 0 0 0 ${right} ${down}`;
  const side = `${corner(ROUND, -ROUND)}v${height - 2 * ROUND}${corner(ROUND, ROUND)}`;
  return element("path", { d: `${start}${side}H${tenth(x + wide)}`, ...line });
}

/** Pale: held in the store by a process that does not believe. */
export function pale({ x, width, height = BAR }: Extent, y: number, ink: Ink): string {
  const size = { width: Math.max(0, width), height };
  return element("rect", { x, y: y - height / 2, ...size, fill: colour(ink), opacity: "0.18" });
}

/** Solid: work. */
export function solid(extent: Extent, y: number, ink: Ink): string {
  return element("rect", { ...boxOf(extent, y, 0.62), fill: colour(ink) });
}

/** Dashed: the process is stopped, or its event loop is blocked. */
export function dashed(extent: Extent, y: number): string {
  const line = { fill: "none", stroke: colour("fault"), "stroke-dasharray": "4 3" };
  return element("rect", { ...boxOf(extent, y, 0.7), ...line });
}

function boxOf({ x, width, height = BAR }: Extent, y: number, part: number) {
  const inner = height * part;
  return { x, y: y - inner / 2, width: Math.max(LEAST, width), height: inner, rx: 2 };
}

/** The width of the ring of a request. */
export const RING = 7;

/** Dotted, from a ring: a request without an answer. */
export function dotted({ x, width }: Extent, y: number): string {
  const line = { stroke: colour("dim"), "stroke-width": 2, "stroke-dasharray": "1 4" };
  const from = { x1: x, y1: y, x2: x + Math.max(LEAST, width), y2: y };
  const ring = { cx: x, cy: y, r: RING / 2, fill: colour("page"), stroke: colour("dim") };
  return element("line", { ...from, ...line }) + element("circle", ring);
}

/** A cross: the process is dead. */
export function cross(x: number, y: number): string {
  const d = `M${tenth(x - 5)} ${tenth(y - 5)}l10 10m0 -10l-10 10`;
  return element("path", { d, fill: "none", stroke: colour("fault"), "stroke-width": 3 });
}

/** A diamond: a write that the resource accepted. */
export function diamond(x: number, y: number): string {
  const d = `M${tenth(x)} ${tenth(y - 5)}l5 5l-5 5l-5 -5z`;
  return element("path", { d, fill: colour("page"), stroke: colour("text") });
}

/** A pole from a row of words down to the bar, with a flag for a fault. */
export function pole(x: number, top: number, bottom: number, ink: Ink, isFlag: boolean): string {
  const d = `M${tenth(x)} ${tenth(bottom)}V${tenth(top)}${isFlag ? "l8 4l-8 4" : ""}`;
  return element("path", { d, fill: isFlag ? colour(ink) : "none", stroke: colour(ink) });
}

/** The way of a message that arrives late, from its process to the store. */
export function way(x: number, top: number, bottom: number): string {
  const line = { stroke: colour("fault"), "stroke-width": 1.5, "stroke-dasharray": "2 3" };
  return element("line", { x1: x, y1: top, x2: x, y2: bottom, ...line });
}

/** A band through all lanes: two at once. */
export function band({ x, width }: Extent, top: number, bottom: number): string {
  const size = { width: Math.max(LEAST + 1, width), height: bottom - top };
  return element("rect", { x, y: top, ...size, fill: colour("clash"), opacity: "0.12" });
}
