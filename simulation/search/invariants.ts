/** Statements that hold in every state of a small world, of either family. */
import { fits, joined, type Request, VACANT } from "../../src/rules/fits.js";

export interface Believer {
  readonly name: string;
  readonly request: Request;
}

/** No two clients believe in holds that are incompatible. */
export function exclusion(believers: readonly Believer[]): string | null {
  let held = VACANT;
  for (const { request } of believers) {
    if (!fits(held, request)) {
      const names = believers.map(({ name }) => name).join(" and ");
      return `Exclusion: ${names} believe that they hold at the same time.`;
    }
    held = joined(held, request);
  }
  return null;
}

/** Each grant has a higher token than all grants before it. */
export function tokenOrder(owner: string, token: number, highest: number): string | null {
  if (token > highest) return null;
  return `Tokens: ${owner} is granted ${token}, but ${highest} was granted before.`;
}

/** A grant goes past nobody who came earlier, waits still, and can be served. */
export function serviceOrder(
  granted: string,
  queue: readonly string[],
  canBeServed: (owner: string) => boolean,
): string | null {
  const place = queue.indexOf(granted);
  const earlier = place < 0 ? queue : queue.slice(0, place);
  const passed = earlier.find((owner) => owner !== granted && canBeServed(owner));
  return passed ? `Order: ${granted} is granted, but ${passed} came before it.` : null;
}

/** An owner that was released never holds or waits again. */
export function noGhost(
  departed: readonly string[],
  isThere: (owner: string) => boolean,
): string | null {
  const ghost = departed.find(isThere);
  return ghost ? `Ghost: ${ghost} was released, and is there again.` : null;
}
