import { nearestWord } from "../options/nearest-word.js";
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

/** Why an option is refused where the verb should stand. Its value may be a secret. */
export function refusedOption(argument: string): string {
  const [option = ""] = argument.split("=");
  if (widthOf(argument) > 0) {
    return "The command is missing, as in: holdfast --store URL list";
  }
  const names = LEADING.map(([name]) => name);
  const nearest = nearestWord(option.replace(/^--?/, ""), names);
  if (nearest !== null) return `There is no option ${option}: did you mean --${nearest}?`;
  const all = names.map((name) => `--${name}`).join(", ");
  return `Only ${all} may stand before the command. Write: holdfast COMMAND ${option} …`;
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
