import type { Entry, EntryOf } from "../history.js";

/** All entries of a history about one lease, from the request to the end. */
export interface Life {
  readonly asked: EntryOf<"asked">;
  held: EntryOf<"held"> | null;
  /** Its beliefs, in the order of time. */
  readonly beliefs: EntryOf<"believed">[];
  /** The last time that `assertHeld` passed. */
  provenMs: number;
  /** When the program stopped relying on the lease, or its process died. */
  endedMs: number;
  /** Its process died while it relied on the lease, or waited for it. */
  hasCrashed: boolean;
  lost: EntryOf<"lost"> | null;
  refused: EntryOf<"refused"> | null;
  releasing: EntryOf<"releasing"> | null;
  released: EntryOf<"released"> | null;
}

/** The leases of a history by their ids. */
export function livesOf(entries: readonly Entry[]): Map<string, Life> {
  const lives = new Map<string, Life>();
  for (const entry of entries) {
    if (entry.type === "asked") lives.set(entry.lease, newLife(entry));
    else if (entry.type === "crashed") endAll(lives, entry);
    else if ("lease" in entry) add(lives.get(entry.lease), entry);
  }
  return lives;
}

/** Reasons of an end that is known beforehand. */
const WARNINGS = new Set(["expired", "max_hold"]);

function newLife(asked: EntryOf<"asked">): Life {
  return {
    asked,
    held: null,
    beliefs: [],
    provenMs: Number.NEGATIVE_INFINITY,
    endedMs: Number.POSITIVE_INFINITY,
    hasCrashed: false,
    lost: null,
    refused: null,
    releasing: null,
    released: null,
  };
}

function endAll(lives: Map<string, Life>, { process, atMs }: EntryOf<"crashed">): void {
  for (const life of lives.values()) {
    // A release that was not answered yet may have died with its process.
    if (life.asked.process !== process || life.released || life.refused) continue;
    life.hasCrashed = true;
    end(life, atMs);
  }
}

function end(life: Life, atMs: number): void {
  life.endedMs = Math.min(life.endedMs, atMs);
}

type About = Exclude<Extract<Entry, { lease: string }>, { type: "asked" }>;

function add(life: Life | undefined, entry: About): void {
  if (!life) return;
  switch (entry.type) {
    case "held":
      life.held = entry;
      return;
    case "believed":
      life.beliefs.push(entry);
      return;
    case "probed":
      if (entry.holds) life.provenMs = entry.atMs;
      else end(life, entry.atMs);
      return;
    case "releasing":
      life.releasing = entry;
      return end(life, entry.atMs);
    case "released":
      life.released = entry;
      return;
    case "lost":
      life.lost = entry;
      // A warning comes while the lease still holds, and work may go on up to the deadline.
      if (!life.held?.graceMs || !WARNINGS.has(entry.reason)) end(life, entry.atMs);
      return;
    case "refused":
      life.refused = entry;
      return end(life, entry.atMs);
  }
}
