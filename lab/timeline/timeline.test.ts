import { describe, expect, it } from "vitest";
import type { History } from "../history.js";
import { crowded, historyOf, killedHolder, stoppedHolder } from "./example-histories.js";
import { sceneOf } from "./scene.js";
import { SMALLEST } from "./signs.js";
import { story } from "./story.js";
import { colour, type Ink, widthOf } from "./svg.js";
import { timeline } from "./timeline.js";

interface Box {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const numberOf = (tag: string, name: string, otherwise = 0): number =>
  Number(new RegExp(` ${name}="(-?[\\d.]+)"`).exec(tag)?.[1] ?? otherwise);

const unescaped = (text: string): string =>
  text
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, "&");

/** The boxes of all texts of a picture. */
function textsOf(svg: string): Box[] {
  return [...svg.matchAll(/(<text[^>]*>)([^<]*)<\/text>/g)].map(([, tag = "", words = ""]) => {
    const text = unescaped(words);
    const size = numberOf(tag, "font-size", SMALLEST);
    const width = widthOf(text, { size, isBold: tag.includes('"600"') });
    const [before = 0] = [
      ...(tag.includes('"middle"') ? [width / 2] : []),
      ...(tag.includes('"end"') ? [width] : []),
    ];
    const left = numberOf(tag, "x") - before;
    const y = numberOf(tag, "y");
    return { text, left, right: left + width, top: y - size * 0.8, bottom: y + size * 0.2 };
  });
}

/** The boxes of all shapes: their outer points. */
function shapesOf(svg: string): Box[] {
  const rects = [...svg.matchAll(/<rect[^>]*>/g)].map(([tag]) => {
    const [left, top] = [numberOf(tag, "x"), numberOf(tag, "y")];
    const [right, bottom] = [left + numberOf(tag, "width"), top + numberOf(tag, "height")];
    return { text: tag, left, right, top, bottom };
  });
  const lines = [...svg.matchAll(/<line[^>]*>/g)].map(([tag]) => {
    const [left, right] = [numberOf(tag, "x1"), numberOf(tag, "x2")];
    return { text: tag, left, right, top: numberOf(tag, "y1"), bottom: numberOf(tag, "y2") };
  });
  const paths = [...svg.matchAll(/<path[^>]* d="M(-?[\d.]+) (-?[\d.]+)[^>]*>/g)].map(
    ([text, x, y]) => {
      return { text, left: Number(x), right: Number(x), top: Number(y), bottom: Number(y) };
    },
  );
  return [...rects, ...lines, ...paths];
}

function overlapping(boxes: readonly Box[]): string[] {
  return boxes.flatMap((one, index) =>
    boxes
      .slice(index + 1)
      .filter((other) => {
        const isBeside = one.right <= other.left || other.right <= one.left;
        return !isBeside && one.top < other.bottom && other.top < one.bottom;
      })
      .map((other) => `${one.text} / ${other.text}`),
  );
}

/** Many short steps of many processes, with long words at the end. */
const dense: History = historyOf({
  subject: "rung-5",
  fault: "blocked-loop",
  subjectTitle: "A subject with a title so long that it does not fit into one line of the picture",
  faultTitle: "a fault whose title goes on and on, past the edge of any page that anyone reads",
  verdict: { kind: "two held", ms: 3, text: `two held ${"again and ".repeat(20)}again` },
  entries: Array.from({ length: 60 }, (_, index) => index).flatMap((index) => {
    const lane = "ABCDE"[index % 5] ?? "A";
    const atMs = index * 7.3;
    return [
      { atMs, type: "asks", lane },
      { atMs: atMs + 1, type: "believes", lane, token: `${index}` },
      { atMs: atMs + 2, type: "fault", lane, what: "delayed", text: "a fault with many words" },
      { atMs: atMs + 3, type: "told", lane, reason: "a reason ".repeat(12) },
      { atMs: atMs + 9, type: "releases", lane },
      { atMs: atMs + 2, type: "truth", holder: lane, token: `${index}` },
    ] as const;
  }),
});

const empty: History = { ...historyOf({ ...killedHolder, entries: [] }), lanes: [] };

const pictures = { stoppedHolder, killedHolder, crowded, dense, empty };

describe.each(Object.entries(pictures))("the picture %s", (_, history) => {
  const svg = timeline(history);
  const [width = 0, height = 0] = (/viewBox="0 0 (\d+) ([\d.]+)"/.exec(svg) ?? [])
    .slice(1)
    .map(Number);

  it("keeps every text and shape inside its edges", () => {
    const outside = [...textsOf(svg), ...shapesOf(svg)].filter(
      ({ left, right, top, bottom }) => left < 0 || top < 0 || right > width || bottom > height,
    );
    expect(outside).toEqual([]);
    expect(textsOf(svg).length).toBeGreaterThan(2);
  });

  it("has no text over another", () => {
    expect(overlapping(textsOf(svg))).toEqual([]);
  });

  it("has no pole through a text", () => {
    const poles = [...svg.matchAll(/ d="M([\d.]+) ([\d.]+)V([\d.]+)/g)].map(([, x, low, high]) => {
      const at = Number(x);
      return { text: "pole", left: at, right: at + 0.1, top: Number(high), bottom: Number(low) };
    });
    const texts = textsOf(svg);
    expect(poles.flatMap((pole) => texts.flatMap((box) => overlapping([pole, box])))).toEqual([]);
  });

  it("uses no colour but those that have a dark one", () => {
    const inks: readonly Ink[] = [
      "page",
      "text",
      "dim",
      "grid",
      "holder",
      "clash",
      "fault",
      "store",
    ];
    const known = new Set(["none", ...inks.map(colour)]);
    const used = [...svg.matchAll(/ (?:fill|stroke)="([^"]*)"/g)].map(([, value = ""]) => value);
    expect(used.filter((value) => !known.has(value))).toEqual([]);
    const pairs = [...svg.matchAll(/ ((?:fill|stroke)="#[^"]*")/g)].map(([, pair = ""]) => pair);
    for (const pair of new Set(pairs)) expect(svg).toContain(`[${pair}] { `);
  });

  it("needs no script, no variable and no other file", () => {
    expect(svg).not.toMatch(/<script|<image|<use|var\(|@import|url\(|href=/);
  });

  it("has a text alternative", () => {
    expect(svg).toContain('role="img" aria-labelledby="title story"');
    expect(unescaped(svg)).toContain(`>${story(history)}</desc>`);
  });

  it("is the same each time, whatever the order of entries of different times", () => {
    expect(timeline(history)).toBe(svg);
    const { entries } = history;
    const isMixed = new Set(entries.map(({ atMs }) => atMs)).size === entries.length;
    if (isMixed)
      expect(plotOf(timeline({ ...history, entries: entries.toReversed() }))).toBe(plotOf(svg));
  });
});

/** The picture without its story, which is in the order of the entries. */
function plotOf(svg: string): string {
  return svg.replace(/<desc.*<\/desc>/s, "");
}

describe("a picture", () => {
  const red = ` fill="${colour("clash")}"`;
  const clashes = (svg: string): number =>
    (svg.match(new RegExp(`<rect[^>]*${red}/>`, "g")) ?? []).length;
  const clashMs = (history: History): number =>
    sceneOf(history).clashes.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);

  it("shows in red the time in which two work, and no other", () => {
    // A and B, then B and C: a block in each lane. The legend has one more.
    expect(clashes(timeline(stoppedHolder))).toBe(5);
    expect(timeline(stoppedHolder)).toContain("two work at once");
    expect(clashMs(stoppedHolder)).toBe(2_700);
    expect(clashes(timeline(killedHolder))).toBe(0);
  });

  it("does not count the time in which a holder is stopped", () => {
    const entries = stoppedHolder.entries.filter(({ atMs }) => atMs < 8000);
    expect(clashes(timeline({ ...stoppedHolder, entries }))).toBe(0);
    expect(timeline({ ...stoppedHolder, entries })).not.toContain("two work at once");
  });

  it("counts the time in which the event loop of a holder is blocked: it runs", () => {
    const entries = stoppedHolder.entries.map((entry) => {
      if (entry.type !== "fault") return entry;
      const what = entry.what === "stopped" ? "blocked" : "unblocked";
      return { ...entry, what } as const;
    });
    expect(clashMs({ ...stoppedHolder, entries })).toBe(5_700);
  });

  it("says where the store ended a hold that its process believes in", () => {
    expect(timeline(stoppedHolder)).toContain("over while process A is stopped");
    expect(timeline(stoppedHolder)).toContain("over, but process B believes");
    expect(timeline(killedHolder)).not.toContain("over, but");
    const renewed = stoppedHolder.entries.map((entry) => {
      return entry.type === "truth" && entry.atMs > 10400 ? { ...entry, holder: "B" } : entry;
    });
    expect(timeline({ ...stoppedHolder, entries: renewed })).not.toContain("but process B");
  });

  it("shows the value of a late copy as a ghost, however late the store was read", () => {
    const entries = [
      { atMs: 10, type: "believes", lane: "A" },
      { atMs: 11, type: "truth", holder: "A" },
      { atMs: 50, type: "releases", lane: "A" },
      { atMs: 52, type: "fault", lane: "A", what: "late copy", text: "the late copy arrives" },
      { atMs: 900, type: "truth", holder: null },
    ] as const;
    expect(timeline({ ...killedHolder, entries })).toContain(">ghost</text>");
    const early = entries.filter(({ type }) => type !== "fault");
    expect(timeline({ ...killedHolder, entries: early })).not.toContain("ghost");
  });

  it("says once that a holder lost the lock", () => {
    const lost = [
      { atMs: 10, type: "believes", lane: "A" },
      { atMs: 20, type: "told", lane: "A", reason: "expired" },
      { atMs: 21, type: "disbelieves", lane: "A", why: "it was told" },
      { atMs: 30, type: "believes", lane: "A" },
      { atMs: 40, type: "disbelieves", lane: "A", why: "its check says so" },
    ] as const;
    const svg = timeline({ ...killedHolder, entries: lost });
    expect(svg).toContain("told: expired");
    expect(svg).not.toContain("stops believing: it was told");
    expect(svg).toContain("stops believing: its check says so");
  });

  it("tells its story in one sentence", () => {
    expect(story(killedHolder)).toBe(
      "at 2 ms process A has the lock; at 20 ms a fault hits process A: kill -9; " +
        "at 900 ms process B gives up; " +
        "the verdict: the lock is never free again.",
    );
  });

  it("leaves a bar open that the end of the trial cut off", () => {
    const openBars = (svg: string): number => (svg.match(/ d="M[^"]*v20[^"z]*H/g) ?? []).length;
    expect(openBars(timeline(killedHolder))).toBe(1);
    expect(openBars(timeline(crowded))).toBe(0);
  });

  it("escapes names and words", () => {
    const evil = `<script>alert("&")</script>\u0000\ud800`;
    const svg = timeline({
      ...stoppedHolder,
      subjectTitle: evil,
      command: evil,
      versions: { [evil]: evil },
      verdict: { kind: "two held", text: evil },
      lanes: [{ id: "A", title: evil }],
      entries: [
        { atMs: 1, type: "told", lane: "A", reason: evil },
        { atMs: 2, type: "fault", lane: "store", what: "cut", text: evil },
        { atMs: 3, type: "truth", holder: "A", token: evil },
      ],
    });
    expect(svg).not.toContain("<script");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids it
    expect(svg).not.toMatch(/\u0000|\p{Surrogate}|&(?!amp;|lt;|gt;|quot;)/u);
    const depth = [...svg.matchAll(/<(\/?)\w+[^>]*?(\/?)>/g)].reduce((sum, [, end, whole]) => {
      return sum + (whole ? 0 : end ? -1 : 1);
    }, 0);
    expect(depth).toBe(0);
  });
});
