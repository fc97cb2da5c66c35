import type { OptionSpec } from "./arguments.js";
import { EVENT_OPTIONS, OUTPUT_OPTIONS, STORE_OPTIONS } from "./settings.js";

const LEADING: readonly (readonly [string, OptionSpec])[] = Object.entries({
  ...STORE_OPTIONS,
  ...OUTPUT_OPTIONS,
  ...EVENT_OPTIONS,
});

/**
 * Options that many commands have may stand before the verb: they are moved behind it, where the
 * verb refuses what it does not have.
 */
export function verbFirst(given: readonly string[]): readonly string[] {
  let at = 0;
  for (let width = widthOf(given[at]); width > 0; width = widthOf(given[at])) at += width;
  const verb = given[at];
  if (verb === undefined) return given;
  return [verb, ...given.slice(0, at), ...given.slice(at + 1)];
}

/** How many arguments an option takes up, with its value; 0 where it is none that may lead. */
function widthOf(argument: string | undefined): number {
  for (const [name, { short, value }] of LEADING) {
    const isNamed = argument === `--${name}` || (short !== undefined && argument === `-${short}`);
    if (isNamed) return value === undefined ? 1 : 2;
    if (value !== undefined && argument?.startsWith(`--${name}=`)) return 1;
  }
  return 0;
}
