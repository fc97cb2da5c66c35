import { describe, expect, it } from "vitest";
import type { Happening } from "../history.js";
import { checkExclusionByBelief, checkExclusionByProbes } from "./exclusion.js";
import { Story } from "./story.js";

/** Two holders, the second from 500 on; the first relies on its lease until 1 000. */
function overlapping(): Story {
  const story = new Story();
  story.at(0).asks("p/0").holds("p/0", 10n, 1_000);
  story.at(100).asks("q/0");
  return story.at(500).holds("q/0", 20n, 1_500);
}

describe("exclusion by belief", () => {
  it("is broken by two programs that rely on a lock at once", () => {
    const [violation] = checkExclusionByBelief(overlapping().entries);
    expect(violation?.message).toContain("p/0");
    expect(violation?.message).toContain('hold "a" at once for 500.0 ms');
  });

  it("is broken even by a frozen process, which may run the next moment", () => {
    const story = overlapping();
    story.at(200).happens({ type: "frozen", process: "p", untilMs: 2_000, how: "paused" });
    expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
  });

  it("is broken by a holder that lost its lease and was never told", () => {
    const story = overlapping();
    story.at(600).probes("p/0", false);
    expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
  });

  it("is kept by a holder that let go before", () => {
    expect(checkExclusionByBelief(overlapping().at(499).releases("p/0").entries)).toEqual([]);
    expect(checkExclusionByBelief(overlapping().at(499).loses("p/0").entries)).toEqual([]);
    const crash = overlapping().at(499).happens({ type: "crashed", process: "p" });
    expect(checkExclusionByBelief(crash.entries)).toEqual([]);
  });

  it("counts a warning as no end", () => {
    const story = new Story();
    story.at(0).asks("p/0").holds("p/0", 10n, 1_000, { graceMs: 600 });
    story.at(400).loses("p/0").asks("q/0");
    story.at(500).holds("q/0", 20n, 1_500);
    expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
  });

  it("is about every single name", () => {
    const story = new Story();
    story.at(0).asks("p/0").holds("p/0", 10n, 1_000);
    story.at(1).asks("q/0", { name: "b" }).holds("q/0", 20n, 1_000, { name: "b" });
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
  });

  it.each([
    ["is broken beyond the limit of the newcomer", 5, 2, 1],
    ["is broken beyond the limit of a holder", 2, 5, 1],
    ["is kept within all limits", 3, 5, 0],
  ])("of a semaphore %s", (_, first, second, count) => {
    const story = new Story();
    const claim = { mode: "shared", weight: 2 } as const;
    story
      .at(0)
      .asks("p/0", claim)
      .holds("p/0", 10n, 1_000, { ...claim, limit: first });
    story.at(1).asks("q/0").holds("q/0", 20n, 1_000, { mode: "shared", weight: 1, limit: second });
    expect(checkExclusionByBelief(story.entries)).toHaveLength(count);
  });
});

describe("a lease that the store ended early", () => {
  it("is excused when it was revoked, or forgotten", () => {
    const revoked = overlapping().at(400).happens({ type: "revoked", name: "a", token: 10n });
    expect(checkExclusionByBelief(revoked.entries)).toEqual([]);
    const forgotten = overlapping().at(400).happens({ type: "forgot" });
    expect(checkExclusionByBelief(forgotten.entries)).toEqual([]);
  });

  it.each([
    ["revoked", { type: "revoked", name: "a", token: 10n }],
    ["forgotten", { type: "forgot" }],
    ["overtaken by the clock", { type: "stepped", byMs: 5_000 }],
  ] as const)(
    "is not excused when it was %s, and goes on after its process was told",
    (_, fault) => {
      const told = { type: "told", process: "p", name: "a", owner: "p/0 owner" } as const;
      const story = overlapping()
        .at(400)
        .happens(fault)
        .at(600)
        .happens({ ...told, saidMs: 599 });
      expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
      story.at(600).loses("p/0", "missing");
      expect(checkExclusionByBelief(story.entries)).toEqual([]);
    },
  );

  it("is not excused from the first time on that its process was told", () => {
    const told = { type: "told", process: "p", name: "a", token: 10n } as const;
    const story = overlapping().at(400).happens({ type: "forgot" }).at(450).happens(told);
    story.at(600).happens(told).at(500).loses("p/0", "missing");
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
    const late = overlapping().at(400).happens({ type: "forgot" }).at(600).happens(told);
    late.at(700).happens(told).at(650).loses("p/0", "missing");
    expect(checkExclusionByBelief(late.entries)).toHaveLength(1);
  });

  it("is excused as long as only another process was told", () => {
    const told = { type: "told", process: "q", name: "a", token: 10n } as const;
    const story = overlapping().at(400).happens({ type: "forgot" }).at(450).happens(told);
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
    story.at(460).happens({ ...told, process: "p" });
    expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
  });

  it.each([
    ["revoked", { type: "revoked", name: "a", token: 10n }],
    ["forgotten", { type: "forgot" }],
    ["overtaken by the clock", { type: "stepped", byMs: 5_000 }],
  ] as const)("is not excused when it was %s after the newer grant", (_, fault) => {
    expect(checkExclusionByBelief(overlapping().at(501).happens(fault).entries)).toHaveLength(1);
  });

  it.each([
    ["a mutex", { mode: "exclusive" }],
    ["permits that do not fit", { mode: "shared", weight: 2, limit: 3 }],
  ] as const)("is not excused beside a newer lease of the same program: %s", (_, claim) => {
    const story = new Story();
    story.at(0).asks("p/0", claim).holds("p/0", 10n, 1_000, claim);
    story.at(400).happens({ type: "forgot" });
    const other = story.at(500).asks("p/1", claim).holds("p/1", 20n, 1_500, claim);
    expect(checkExclusionByBelief(other.entries)).toHaveLength(1);
    story.at(500).loses("p/0", "replaced");
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
  });

  it.each([
    [199, 0],
    [201, 1],
  ])("does not count beside a newer grant if it was revoked before that: at %d", (atMs, count) => {
    const claim = { mode: "shared", weight: 1, limit: 3 } as const;
    const story = new Story()
      .at(0)
      .asks("p/0")
      .holds("p/0", 10n, 1_000, { ...claim, weight: 2 });
    // Its grant is older than the revocation, and the program gets it late.
    story.at(10).asks("p/1").grants("p/1 owner", 11n);
    story.at(atMs).happens({ type: "revoked", name: "a", token: 10n });
    story.at(200).asks("q/0").holds("q/0", 20n, 1_000, claim);
    story.at(500).takes("p/1", 11n, 1_000, claim);
    expect(checkExclusionByBelief(story.entries)).toHaveLength(count);
  });

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("is not excused by a fault before the store last renewed it: $type", (happening) => {
    const story = overlapping().at(300).happens(happening);
    story.at(400).extends(10n);
    expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
  });

  it.each([
    ["is", 1_000, 0],
    ["is not", 900, 1],
  ])(
    "%s excused by a jump before a copy of its confirm if the grant promised %d ms",
    (_, remainingMs, count) => {
      const story = new Story().at(0).asks("p/0").grants("p/0 owner", 10n, { remainingMs });
      story.takes("p/0", 10n, 1_000).at(300).happens({ type: "stepped", byMs: 500 });
      // The copy moves no expiry: the store promises the time up to 500.
      story.at(350).extends(10n, 150).at(500).asks("q/0").holds("q/0", 20n, 1_500);
      expect(checkExclusionByBelief(story.entries)).toHaveLength(count);
    },
  );

  it.each<Happening>([
    { type: "forgot" },
    { type: "revoked", name: "a", token: 10n },
    { type: "stepped", byMs: 5_000 },
  ])("is not excused if the store renewed it beside the newer grant: $type", (happening) => {
    const story = overlapping().at(400).happens(happening);
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
    story.at(600).extends(10n);
    expect(checkExclusionByBelief(story.entries)).toHaveLength(1);
  });

  it("is excused when the store forgot it and gave an old token of the same owner again", () => {
    const story = new Story();
    story.at(0).grants("q/0 owner", 10n);
    story.at(100).asks("p/0").holds("p/0", 20n, 1_000);
    story.at(400).happens({ type: "forgot" });
    story.at(500).asks("q/0").holds("q/0", 10n, 2_000);
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
  });

  it("is excused for as long as the clock jumped ahead, and no longer", () => {
    const step = (byMs: number) => overlapping().at(400).happens({ type: "stepped", byMs });
    expect(checkExclusionByBelief(step(500).entries)).toEqual([]);
    expect(checkExclusionByBelief(step(400).entries)).toHaveLength(1);
    expect(checkExclusionByBelief(step(-60_000).entries)).toHaveLength(1);
  });

  it("is excused by the jump of one node of several only if that node had voted for it", () => {
    const step = (owners: string[], atMs = 400) => {
      return overlapping().at(atMs).happens({ type: "stepped", byMs: 5_000, owners });
    };
    expect(checkExclusionByBelief(step(["p/0 owner"]).entries)).toEqual([]);
    expect(checkExclusionByBelief(step([]).entries)).toHaveLength(1);
    // The majority was not complete when the node that had voted jumped.
    expect(checkExclusionByBelief(step(["p/0 owner"], -1).entries)).toEqual([]);
    expect(checkExclusionByBelief(step(["p/0 owner"], 501).entries)).toHaveLength(1);
  });

  it("is not excused by the jump of a node that has renewed its vote since", () => {
    const owners = ["p/0 owner"];
    const story = overlapping().at(300).happens({ type: "stepped", byMs: 5_000, node: 1, owners });
    const renew = (node: number, atMs: number, owner = "p/0 owner") => {
      story.at(atMs).happens({ type: "vote renewed", node, name: "a", owner });
      return checkExclusionByBelief(story.entries).length;
    };
    const others = [renew(1, 200), renew(2, 400), renew(1, 400, "q/0 owner"), renew(1, 501)];
    expect(others).toEqual([0, 0, 0, 0]);
    expect(renew(1, 400)).toBe(1);
  });
});

describe("exclusion by probes", () => {
  it("is broken when both were proven to hold", () => {
    const story = overlapping().at(600).probes("q/0");
    expect(checkExclusionByProbes(story.entries)).toEqual([]);
    story.at(700).probes("p/0");
    expect(checkExclusionByProbes(story.entries)).toHaveLength(1);
  });

  it("is broken by a holder that still passes after its deadline", () => {
    const story = new Story();
    story.at(0).asks("p/0").holds("p/0", 10n, 1_000);
    story.at(100).asks("q/0");
    story.at(1_100).holds("q/0", 20n, 2_000);
    story.at(1_200).probes("q/0").probes("p/0");
    expect(checkExclusionByBelief(story.entries)).toEqual([]);
    expect(checkExclusionByProbes(story.entries)).toHaveLength(1);
  });
});
