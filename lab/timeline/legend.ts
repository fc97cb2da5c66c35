import type { Scene } from "./scene.js";
import {
  cross,
  dashed,
  diamond,
  dotted,
  hollow,
  pale,
  pole,
  SMALLEST,
  solid,
  text,
} from "./signs.js";
import type { Ink } from "./svg.js";
import { type Font, widthOf } from "./svg.js";

const LETTERS: Font = { size: SMALLEST };
const LINE = 24;
const SIGN = 28;
const HEIGHT = 15;

interface Item {
  readonly words: string;
  readonly isShown: boolean;
  sign(x: number, y: number): string;
}

const bar = (draw: typeof solid, ink: Ink) => (x: number, y: number) =>
  draw({ x, width: SIGN, height: HEIGHT }, y, ink);

/** The meaning of each sign that the picture has. */
function itemsOf({ lanes, store, clashes }: Scene): Item[] {
  const some = (test: (lane: Scene["lanes"][number]) => boolean): boolean => lanes.some(test);
  const hasFault = [...lanes, store].some(({ notes }) => notes.some(({ isFlag }) => isFlag));
  const all: Item[] = [
    {
      words: "asks and waits",
      isShown: some(({ waits }) => waits.length > 0),
      sign: (x, y) => dotted({ x: x + 4, width: SIGN - 4 }, y),
    },
    {
      words: "believes that it holds the lock",
      isShown: some(({ beliefs }) => beliefs.length > 0),
      sign: bar(hollow, "holder"),
    },
    {
      words: "works",
      isShown: some(({ works }) => works.length > 0),
      sign: bar(solid, "holder"),
    },
    {
      words: "works while another works",
      isShown: clashes.length > 0,
      sign: bar(solid, "clash"),
    },
    {
      words: "held in the store",
      isShown: store.truths.some(({ isGhost }) => !isGhost),
      sign: bar(hollow, "store"),
    },
    {
      words: "ghost: a value by which no process believes",
      isShown: store.truths.some(({ isGhost }) => isGhost),
      sign: (x, y) => bar(pale, "clash")(x, y) + bar(hollow, "clash")(x, y),
    },
    {
      words: "held in the store by a process that does not believe",
      isShown: store.truths.some(({ isGhost, doubts }) => !isGhost && doubts.length > 0),
      sign: (x, y) => bar(pale, "store")(x, y) + bar(hollow, "store")(x, y),
    },
    {
      words: "stopped, or its event loop blocked",
      isShown: some(({ stops }) => stops.length > 0),
      sign: (x, y) => dashed({ x, width: SIGN, height: HEIGHT }, y),
    },
    {
      words: "killed",
      isShown: some(({ killedAtMs }) => killedAtMs.length > 0),
      sign: (x, y) => cross(x + SIGN / 2, y),
    },
    {
      words: "a write that was accepted",
      isShown: some(({ writesAtMs }) => writesAtMs.length > 0),
      sign: (x, y) => diamond(x + SIGN / 2, y),
    },
    {
      words: "fault",
      isShown: hasFault,
      sign: (x, y) => pole(x + SIGN / 2, y - 7, y + 7, "fault", true),
    },
  ];
  return all.filter(({ isShown }) => isShown);
}

/** The legend in lines from `left` to `right`, and where it ends. */
export function legend(
  scene: Scene,
  left: number,
  right: number,
  top: number,
): { readonly markup: string; readonly bottom: number } {
  let [x, y] = [left, top + HEIGHT / 2];
  const markup = itemsOf(scene).map(({ words, sign }) => {
    const width = SIGN + 6 + widthOf(words, LETTERS);
    if (x > left && x + width > right) [x, y] = [left, y + LINE];
    const item = sign(x, y) + text(words, x + SIGN + 6, y + 4, "text", LETTERS);
    x += width + 20;
    return item;
  });
  return { markup: markup.join("\n"), bottom: y + HEIGHT / 2 };
}
