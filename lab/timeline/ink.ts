import type { VerdictKind } from "../history.js";

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
