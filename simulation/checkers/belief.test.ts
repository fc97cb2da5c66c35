import { describe, expect, it } from "vitest";
import { checkBelief, checkToldEnds } from "./belief.js";
import { Story } from "./story.js";

/** A lease from 0 on, which its program relies on until 1,000 ms; its entry ends at `lapsedMs`. */
const lapsing = (lapsedMs: number): Story =>
  new Story()
    .at(0)
    .asks("p/0")
    .holds("p/0", 10n, 1_000)
    .at(lapsedMs)
    .happens({ type: "lapsed", name: "a", token: 10n });

describe("a program that relies on a lease", () => {
  it("stops before the entry of the lease ends", () => {
    expect(checkBelief(lapsing(1_000).entries)).toEqual([]);
    expect(checkBelief(lapsing(999).entries)).toHaveLength(1);
  });

  it("may have stopped by itself", () => {
    const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 1_000).at(500).releases("p/0");
    const lapsed = story.at(600).happens({ type: "lapsed", name: "a", token: 10n });
    expect(checkBelief(lapsed.entries)).toEqual([]);
  });

  it("has nothing to do with the entries of other leases", () => {
    const story = new Story().at(0).asks("p/0").holds("p/0", 10n, 1_000).at(500);
    const other = story.happens({ type: "lapsed", name: "b", token: 10n });
    expect(checkBelief(other.entries)).toEqual([]);
  });
});

describe("a program whose process was told that the grant has ended", () => {
  const told = (owner: string, saidMs: number): Story =>
    new Story()
      .at(0)
      .asks("p/0")
      .holds("p/0", 10n, 1_000)
      .at(500)
      .happens({ type: "told", process: "p", name: "a", owner, saidMs });

  it("relies on the lease no longer than the turn", () => {
    expect(checkToldEnds(told("p/0 owner", 400).entries)).toHaveLength(1);
    expect(checkToldEnds(told("p/0 owner", 400).loses("p/0", "missing").entries)).toEqual([]);
  });

  it("may rely on a grant that another owner has, or that came after the message", () => {
    expect(checkToldEnds(told("p/1 owner", 400).entries)).toEqual([]);
    expect(checkToldEnds(told("p/0 owner", 0).entries)).toEqual([]);
  });
});
