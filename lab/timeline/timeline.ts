import type { History } from "../history.js";
import {
  extentOf,
  leastWidth,
  NOTE,
  type Place,
  placeOf,
  processLane,
  storeLane,
  TITLE,
} from "./lane-drawing.js";
import { legend } from "./legend.js";
import { duration, type Scale, scaleFor, ticksOf } from "./scale.js";
import { type Scene, sceneOf } from "./scene.js";
import { band, SMALLEST, text, way } from "./signs.js";
import { story } from "./story.js";
import {
  colour,
  darkOf,
  element,
  escaped,
  type Font,
  type Ink,
  isGood,
  shortened,
  tenth,
  widthOf,
  wrapped,
} from "./svg.js";

const WIDTH = 960;
const EDGE = 16;
const INNER = WIDTH - 2 * EDGE;
const MAX_TITLE = 160;
const FONTS = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

const HEADLINE: Font = { size: 17, isBold: true };
const VERDICT: Font = { size: 14, isBold: true };
const SMALL: Font = { size: 12 };

/** Facts that are not in the history itself. */
export interface Remarks {
  /** How many runs of the trial had this verdict. */
  readonly agreement?: string;
  /** The subject that holds where this one fails. */
  readonly cure?: string;
  /** The row of the store's page that says that the store may fail so. */
  readonly exception?: string;
}

/** The picture of one history as an SVG that needs nothing else: no script, no font, no file. */
export function timeline(history: History, { agreement, cure, exception }: Remarks = {}): string {
  const scene = sceneOf(history);
  const head = headOf(history, agreement);
  const plot = plotOf(scene, head.bottom + 10);
  const signs = legend(scene, EDGE, WIDTH - EDGE, plot.bottom + 8);
  const last = [
    history.command,
    ...(cure === undefined ? [] : [`withstood by ${cure}`]),
    ...(exception === undefined ? [] : [`as the page of the store says: ${exception}`]),
  ];
  const foot = lines([[last.join(" · "), "dim", SMALL]], signs.bottom + 22);
  const height = foot.bottom + 8;
  const body = [head, plot, signs, foot].map(({ markup }) => `${markup}\n`).join("");
  const title = `${history.subjectTitle} · ${history.faultTitle}: ${history.verdict.text}`;
  return `${element(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      viewBox: `0 0 ${WIDTH} ${height}`,
      "font-family": FONTS,
      "font-size": SMALLEST,
      role: "img",
      "aria-labelledby": "title story",
    },
    "\n",
    `${element("title", { id: "title" }, escaped(title))}\n`,
    `${element("desc", { id: "story" }, escaped(story(history)))}\n`,
    `<style>${darkOf(body)}</style>\n`,
    `${element("rect", { width: WIDTH, height, fill: colour("page") })}\n`,
    body,
  )}\n`;
}

interface Part {
  readonly markup: string;
  readonly bottom: number;
}

function headOf(
  { subjectTitle, faultTitle, versions, ttlMs, verdict }: History,
  agreement: string | undefined,
): Part {
  const facts = [
    `ttl ${duration(ttlMs)}`,
    ...Object.entries(versions).map(([name, version]) => `${name} ${version}`),
    ...(agreement === undefined ? [] : [agreement]),
  ];
  const { kind, text: words } = verdict;
  const sentence = words.startsWith(kind) ? words : `${kind}: ${words}`;
  return lines(
    [
      [`${subjectTitle} · ${faultTitle}`, "text", HEADLINE],
      [sentence, isGood(kind) ? "store" : "clash", VERDICT],
      [facts.join(" · "), "dim", SMALL],
    ],
    EDGE + HEADLINE.size,
  );
}

/** Paragraphs below each other; `top` is the first baseline. */
function lines(
  paragraphs: readonly (readonly [words: string, ink: Ink, font: Font])[],
  top: number,
): Part {
  let y = top;
  let bottom = top;
  const markup = paragraphs.flatMap(([words, ink, font]) =>
    wrapped(words, font, INNER).map((line) => {
      const part = text(line, EDGE, y, ink, font);
      bottom = y;
      y += font.size + 7;
      return part;
    }),
  );
  return { markup: markup.join("\n"), bottom };
}

function plotOf(scene: Scene, top: number): Part {
  const titles = scene.lanes.map((lane) => shortened(lane.title, TITLE, MAX_TITLE));
  const lanes = scene.lanes.map((lane, index) => ({ ...lane, title: titles[index] ?? "" }));
  const left = EDGE + 14 + Math.max(...["store", ...titles].map((title) => widthOf(title, TITLE)));
  const notes = [...lanes, scene.store].flatMap((lane) => lane.notes);
  const texts = notes.map((note) => ({ atMs: note.atMs, width: leastWidth(note) }));
  const scale = scaleFor(scene.endMs, left, WIDTH - EDGE, texts);

  let y = top;
  const places = lanes.map((lane) => {
    const place = placeOf(lane.notes, y, scale);
    y = place.bottom + 16;
    return place;
  });
  const caption = captionOf(scene, scale, y);
  const lanesBottom = caption === "" ? y - 8 : y + 6;
  const store = placeOf(scene.store.notes, lanesBottom + 12, scale);
  return {
    markup: [
      grid(scene.endMs, scale, top, store.bottom + 8),
      ...scene.clashes.map((clash) => band(extentOf(clash, scale), top, lanesBottom)),
      ...lanes.flatMap(({ arrivals }, index) => {
        const from = places[index]?.bottom ?? top;
        return arrivals.map((atMs) => way(scale.x(atMs), from, store.top));
      }),
      ...lanes.map((lane, index) => {
        const place: Place = places[index] ?? store;
        return processLane(lane, place, scale, scene.clashes);
      }),
      caption,
      storeLane(scene.store.truths, store, scale),
    ].join("\n"),
    bottom: store.bottom + 26,
  };
}

/** Below the first of the bands. The verdict says how long two held. */
function captionOf({ clashes }: Scene, scale: Scale, y: number): string {
  const [first] = clashes;
  if (!first) return "";
  const words = "two work at once";
  const font = { ...NOTE, isBold: true };
  const half = widthOf(words, font) / 2;
  const { x, width } = extentOf(first, scale);
  const middle = Math.min(Math.max(x + width / 2, scale.left + half), WIDTH - EDGE - half);
  return text(words, middle, y, "clash", font, "middle");
}

function grid(endMs: number, scale: Scale, top: number, bottom: number): string {
  const ticks = ticksOf(endMs);
  const [from, to] = [tenth(top), tenth(bottom)];
  const d = ticks.map((ms) => `M${tenth(scale.x(ms))} ${from}V${to}`).join("");
  const times = ticks.map((ms) => {
    const words = ms === 0 ? "0" : endMs < 1000 ? `${ms} ms` : `${ms / 1000} s`;
    return text(words, scale.x(ms), bottom + 14, "dim", NOTE, "middle");
  });
  return [element("path", { d, stroke: colour("grid") }), ...times].join("\n");
}
