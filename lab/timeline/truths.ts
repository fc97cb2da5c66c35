/** The truth of the store, as the picture shows it. */
import type { Entry, EntryOf } from "../history.js";
import { type Span, type Stretch, without } from "./spans.js";

export interface Truth extends Stretch {
  readonly holder: string;
  /** Of that process: where its title does not fit. */
  readonly id: string;
  readonly token?: string;
  readonly isGhost: boolean;
  /** The times in which that holder does not believe, or is dead. */
  readonly doubts: readonly Span[];
}

/**
 * The changes of the truth. After a late copy the value of its process is a ghost, even if the
 * store was not read between the release and the copy.
 */
function haunted(entries: readonly Entry[]): EntryOf<"truth">[] {
  const ghosts = new Set<string>();
  let truth: EntryOf<"truth"> | undefined;
  return entries.flatMap((entry) => {
    if (entry.type === "believes") ghosts.delete(entry.lane);
    if (entry.type === "truth") {
      const isGhost = entry.holder !== null && ghosts.has(entry.holder);
      truth = isGhost ? { ...entry, holder: "ghost" } : entry;
      return [truth];
    }
    if (entry.type !== "fault" || entry.what !== "late copy") return [];
    ghosts.add(entry.lane);
    if (truth?.holder !== entry.lane) return [];
    truth = { atMs: entry.atMs, type: "truth", holder: "ghost" };
    return [truth];
  });
}

/** A process of the picture, as far as it matters here. */
interface Holder {
  readonly id: string;
  readonly title: string;
  readonly beliefs: readonly Span[];
}

/** The truth is read again and again, and comes a little late: a shorter doubt is that delay. */
const MIN_DOUBT = 0.02;

export function truthsOf(
  entries: readonly Entry[],
  lanes: readonly Holder[],
  endMs: number,
): Truth[] {
  const changes = haunted(entries);
  return changes.flatMap(({ atMs, holder, token }, index) => {
    if (holder === null) return [];
    const next = changes[index + 1];
    const lane = lanes.find(({ id }) => id === holder);
    const span = { fromMs: atMs, toMs: next?.atMs ?? endMs };
    const doubts = without([span], lane?.beliefs ?? []).filter(({ fromMs, toMs }) => {
      return toMs - fromMs > endMs * MIN_DOUBT;
    });
    const isGhost = holder === "ghost";
    if (isGhost && doubts.length === 0) return [];
    return {
      ...span,
      isOpen: next === undefined,
      holder: lane?.title ?? holder,
      id: holder,
      ...(token === undefined ? {} : { token }),
      isGhost,
      doubts,
    };
  });
}
