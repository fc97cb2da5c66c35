import type { Holdfast } from "../api/holdfast.js";
import type { LockView } from "../contract/store.js";
import type { Space } from "../rules/name.js";
import { type Arguments, type OptionSpecs, UsageError } from "./arguments.js";

const SPACES: readonly Space[] = ["lock", "election", "once"];

export const KIND_OPTIONS: OptionSpecs = {
  kind: { short: "k", value: "KIND", help: "lock, election or once: names of each are apart" },
};

/** The space that `--kind` asks for; null without `--kind`. */
export function spaceOf(args: Arguments): Space | null {
  const kind = args.text("kind");
  if (kind === undefined) return null;
  const space = SPACES.find((known) => known === kind);
  if (space) return space;
  throw new UsageError(`--kind ${JSON.stringify(kind)} is none of ${SPACES.join(", ")}.`);
}

/** All names in use that begin with `prefix`, sorted. */
export async function allViews(
  locks: Holdfast,
  prefix: string,
  only: Space | null,
): Promise<LockView[]> {
  const views: LockView[] = [];
  for (const space of only ? [only] : SPACES) {
    for await (const view of locks.list({ prefix, space })) {
      if (isInUse(view)) views.push(view);
    }
  }
  return views.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/** The lock, election and once of one name, as far as they are in use. */
export async function viewsOf(
  locks: Holdfast,
  name: string,
  only: Space | null,
): Promise<LockView[]> {
  const views = await Promise.all(
    (only ? [only] : SPACES).map((space) => locks.inspect(name, space)),
  );
  return views.filter(isInUse);
}

export function isInUse({ holders, waiters, mark }: LockView): boolean {
  return holders.length > 0 || waiters.length > 0 || mark !== null;
}
