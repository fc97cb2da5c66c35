import { describe, expect, it } from "vitest";
import { LedgerTrial } from "../../test/fixtures/ledger-trial.js";
import type { Command } from "./ledger-command.js";
import { Upkeep } from "./upkeep.js";

const SHARED = { mode: "shared" } as const;
const MANY = 200;
/** The first step of a command, and a slice. */
const STEPS = 65;

/** A writer holds, and many readers of one client wait. */
function readersBehindWriter(): LedgerTrial {
  const trial = new LedgerTrial();
  trial.take("writer");
  for (let number = 0; number < MANY; number += 1) trial.acquire(`reader-${number}`, SHARED);
  return trial;
}

/** Many readers whose leases are over. */
function expiredReaders(): LedgerTrial {
  const trial = new LedgerTrial();
  for (let number = 0; number < MANY; number += 1) trial.take(`reader-${number}`, SHARED);
  return trial.pass(31);
}

describe("a release that lets many in", () => {
  it("serves a slice, says that there is more, and every later command goes on", () => {
    const trial = readersBehindWriter();
    expect(trial.release("writer")).toMatchObject({ held: true, more: true });
    expect(trial.handedOff()).toHaveLength(STEPS);
    expect(trial.confirm("reader-0")).toMatchObject({ type: "renewed", waiting: true });
    expect(trial.handedOff()).toHaveLength(STEPS);
    expect(trial.renew("reader-1")).toMatchObject({ type: "renewed", waiting: true });
    expect(trial.handedOff()).toHaveLength(STEPS);
    expect(trial.heartbeat("r")).toMatchObject({ waiting: 0, more: true });
    expect(trial.handedOff().map(({ owner }) => owner)).toEqual([
      "reader-195",
      "reader-196",
      "reader-197",
      "reader-198",
      "reader-199",
    ]);
  });

  it("tells some grants at a time in the reply to a heartbeat, the oldest first", () => {
    const trial = readersBehindWriter();
    trial.release("writer");
    for (let turn = 0; turn < 3; turn += 1) trial.inspect();
    const { grants, more } = trial.heartbeat("r");
    expect({ first: grants[0]?.owner, count: grants.length, more }).toEqual({
      first: "reader-0",
      count: 64,
      more: true,
    });
    for (const { owner } of grants) trial.confirm(owner);
    expect(trial.heartbeat("r").grants[0]?.owner).toBe("reader-64");
  });

  it("ends the waits of a finished once in slices, too", () => {
    const trial = readersBehindWriter();
    const keep = { ttlUs: 1e9, meta: "{}" };
    expect(trial.release("writer", { keep })).toMatchObject({ held: true, more: true });
    expect(trial.pushes.splice(0)).toHaveLength(STEPS);
    expect(trial.acquire("late", SHARED)).toMatchObject({ type: "marked" });
    while (trial.heartbeat("r").more);
    expect(trial.inspect().waiters).toEqual([]);
  });
});

describe("holders that expired, more than a slice", () => {
  it("block those they exclude until they are dropped, and say that asking again helps", () => {
    const trial = expiredReaders();
    const busy = trial.acquire("writer", { enqueue: false });
    expect(busy).toMatchObject({ type: "busy" });
    expect("dueUs" in busy && busy.dueUs).toBeLessThanOrEqual(0);
    let asked = 1;
    while (trial.acquire("writer", { enqueue: false }).type === "busy") asked += 1;
    expect(asked).toBe(Math.floor(MANY / STEPS));
  });

  it("are gone for their owners, for a revoke and for a look", () => {
    const trial = new LedgerTrial();
    const tokens = Array.from({ length: MANY }, (_, at) => trial.take(`reader-${at}`, SHARED));
    trial.pass(31);
    expect(trial.renew("reader-190")).toMatchObject({ type: "gone", reason: "missing" });
    expect(trial.revoke(tokens.at(-1) as number)).toBe(false);
    expect(trial.inspect().holders).toEqual([]);
    expect(expiredReaders().release("reader-199")).toMatchObject({ held: false });
    const again = expiredReaders();
    expect(again.take("reader-199", SHARED)).toBeGreaterThan(tokens.at(-1) as number);
  });
});

describe("the commands of a batch", () => {
  it("share a slice, and do a step each beyond it", () => {
    const trial = readersBehindWriter();
    const { key } = trial;
    const upkeep = new Upkeep(10);
    const batch: Command[] = [
      { type: "release", key, owner: "writer", tombstoneUs: 0, keep: null },
      { type: "confirm", key, owner: "reader-0" },
      { type: "confirm", key, owner: "reader-1" },
    ];
    for (const command of batch) trial.ledger.execute(command, trial.at, upkeep);
    expect(trial.handedOff()).toHaveLength(11 + 1 + 1);
    upkeep.startBatch();
    trial.ledger.execute({ type: "confirm", key, owner: "reader-2" }, trial.at, upkeep);
    expect(trial.handedOff()).toHaveLength(11);
  });
});
