/** Key spaces that never meet: a lock, an election and a once of the same name are three things. */
export type Space = (typeof SPACES)[number];
export const SPACES = ["lock", "election", "once"] as const;

export const MAX_NAME_BYTES = 512;

const PREFIX: Record<Space, string> = { lock: "l:", election: "e:", once: "o:" };

/** Says which rule a name breaks, or null when it is fine. */
export function nameProblem(name: unknown): string | null {
  if (typeof name !== "string") return "must be a string";
  if (name === "") return "must not be empty";
  if (!isWellFormed(name)) return "must be well-formed unicode";
  // A code unit has at most three bytes.
  const isShort = 3 * name.length <= MAX_NAME_BYTES;
  if (!isShort && Buffer.byteLength(name) > MAX_NAME_BYTES)
    return `must have at most ${MAX_NAME_BYTES} bytes`;
  return null;
}

/** The one string a store keeps a name under; no two (space, name) pairs share it. */
export function keyOf(space: Space, name: string): string {
  return PREFIX[space] + name;
}

/** The space and the name that `keyOf` made the key of. */
export function splitKey(key: string): { space: Space; name: string } {
  const space = key.startsWith("l") ? "lock" : key.startsWith("e") ? "election" : "once";
  return { space, name: key.slice(2) };
}

/** Order by the bytes of the name, the same in every language that joins in: it is protocol. */
export function compareNames(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Lone surrogates all encode to the same bytes: two texts with them may become one. */
export function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}
