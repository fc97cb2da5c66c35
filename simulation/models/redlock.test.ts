/** The model of the quorum rules: all rules together hold, and each of them is necessary. */

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isFull } from "../../test/fixtures/depth.js";
import { check } from "./spin.js";

const MODEL = fileURLToPath(new URL("redlock.pml", import.meta.url));
const INSTALL = fileURLToPath(new URL("../../scripts/servers.mjs", import.meta.url));
const PATIENCE = { timeout: 30 * 60_000 };

/** The size of a world. The larger ones are for the full run. */
const SMALL = ["OWNERS=2", "ROUNDS=2", "BALLOTS=2"];
const WORLDS = {
  raises: ["OWNERS=2", "ROUNDS=3", "BALLOTS=3"],
  restarts: [...SMALL, "CRASHES=1", "SAVES"],
  "restarts of two": [...SMALL, "CRASHES=2"],
  renewals: [...SMALL, "RENEWS"],
};
const LARGE_WORLDS = {
  "three attempts": ["OWNERS=3", "ROUNDS=3", "BALLOTS=2"],
  "renewals and restarts": [...SMALL, "RENEWS", "CRASHES=1"],
  "long leases": [...SMALL, "LONG", "CRASHES=1"],
  resumptions: [...SMALL, "RENEWS", "RESUMES"],
  "resumptions and a restart": [...SMALL, "RENEWS", "RESUMES", "CRASHES=1"],
};
type World = keyof typeof WORLDS | keyof typeof LARGE_WORLDS;
const worlds: Record<World, readonly string[]> = { ...WORLDS, ...LARGE_WORLDS };

/** The world in which the absence of a rule does harm. */
const RULES: readonly (readonly [rule: string, world: World])[] = [
  ["NO_ABOVE", "raises"],
  ["NO_EXACT", "raises"],
  ["NO_BLOCKS", "raises"],
  ["NO_LATE", "raises"],
  ["NO_SENT", "renewals"],
  ["NO_CLOSE_ABSENT", "renewals"],
  ["NO_PLUS_ONE", "renewals"],
  ["NO_FREE", "renewals"],
  ["NO_HIGHER", "renewals"],
  ["NO_DELAY", "restarts"],
  ["NO_RUN_ID", "restarts"],
  ["NO_FLOOR", "restarts"],
  ["NO_LATE_FLOOR", "restarts"],
  ["NO_MAJORITY_FLOOR", "restarts"],
];
const LARGE_RULES: typeof RULES = [
  ["NO_SLEEP", "renewals and restarts"],
  ["NO_RENEWAL_DEADLINE", "renewals and restarts"],
  ["NO_ANNOUNCE", "long leases"],
  ["NO_LONGEST", "long leases"],
  ["NO_KEPT", "resumptions and a restart"],
];

/** Events that must be possible: a model in which nothing happens would hold, too. */
const WITNESSES: readonly (readonly [what: string, world: World, macro: string])[] = [
  ["a grant with a vote that was raised", "raises", "WITNESS=1"],
  ["a grant that needs a restarted node", "restarts", "WITNESS=2"],
  ["a renewal that needs a node taken again", "renewals", "WITNESS=3"],
  ["a lease that is resumed", "resumptions", "WITNESS=4"],
];

let missing: string | null = null;

beforeAll(async () => {
  const install = promisify(execFile)(process.execPath, [INSTALL, "spin"]);
  missing = await install.then(
    () => null,
    (error) => String(error.stderr),
  );
}, 180_000);

beforeEach(({ skip }) => skip(missing !== null, `SPIN and a C compiler are needed: ${missing}`));

describe("the rules hold", () => {
  const cases = Object.keys(isFull ? worlds : WORLDS) as World[];
  it.for(cases)("with %s", PATIENCE, async (world) => {
    const { isUpheld, output } = await check(MODEL, worlds[world]);
    expect(isUpheld, output).toBe(true);
  });
});

describe("without a rule they do not", () => {
  const rules = isFull ? [...RULES, ...LARGE_RULES] : RULES;
  it.for(rules)("%s (%s)", PATIENCE, async ([rule, world]) => {
    const { isUpheld, output } = await check(MODEL, [...worlds[world], rule]);
    expect(isUpheld).toBe(false);
    expect(output).toContain("assertion violated");
  });
});

describe("there is", () => {
  it.each(WITNESSES)("%s", PATIENCE, async (_, world, macro) => {
    expect((await check(MODEL, [...worlds[world], macro])).isUpheld).toBe(false);
  });

  it("no raised vote where no owner may raise its own (NO_RAISE_OWN)", PATIENCE, async () => {
    const macros = [...worlds.raises, "WITNESS=1", "NO_RAISE_OWN"];
    expect((await check(MODEL, macros)).isUpheld).toBe(true);
  });
});
