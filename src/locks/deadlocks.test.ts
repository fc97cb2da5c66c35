import { beforeEach, describe, expect, it } from "vitest";
import { LockTrial } from "../../test/fixtures/lock-trial.js";
import { settled } from "../../test/fixtures/manual-runtime.js";
import { watch } from "../../test/fixtures/outcome.js";
import type { Holdfast } from "../api/holdfast.js";

let trial: LockTrial;
let waits: (() => void)[];

beforeEach(() => {
  trial = new LockTrial();
  waits = [];
});

/** Holds `outer`, and asks for `inner` inside when it is told to. */
async function nest(locks: Holdfast, outer: string, inner: string): Promise<void> {
  const body = async (): Promise<void> => {
    await new Promise<void>((go) => waits.push(go));
    await locks.mutex(inner).run(() => {});
  };
  void watch(locks.mutex(outer).run(body));
  await settled();
}

async function meet(): Promise<void> {
  for (const go of waits) go();
  await settled();
}

describe("findDeadlocks", () => {
  it("finds two processes that wait for each other", async () => {
    await nest(trial.locks, "a", "b");
    await nest(trial.others, "b", "a");
    expect(await trial.locks.findDeadlocks()).toEqual([]);
    await meet();
    const [found, ...more] = await trial.locks.findDeadlocks();
    expect(more).toEqual([]);
    expect(found?.steps.map(({ name, waitsFor }) => [name, waitsFor]).sort()).toEqual([
      ["a", "b"],
      ["b", "a"],
    ]);
    expect(JSON.parse(JSON.stringify(found))).toMatchObject({ steps: [{}, {}] });
    const [held] = (await trial.locks.inspect("a")).holders;
    expect(found?.steps.find(({ name }) => name === "a")).toMatchObject({
      token: held?.token,
      meta: { pid: process.pid },
    });
  });

  it("finds a circle of three in one process, and nothing of those outside", async () => {
    await nest(trial.locks, "a", "b");
    await nest(trial.locks, "b", "c");
    await nest(trial.locks, "c", "a");
    await nest(trial.others, "d", "a");
    await meet();
    const found = await trial.locks.findDeadlocks();
    expect(found.map(({ steps }) => steps.map(({ name }) => name).sort())).toEqual([
      ["a", "b", "c"],
    ]);
  });

  it("finds nothing where waits form a chain", async () => {
    await nest(trial.locks, "a", "b");
    await nest(trial.others, "b", "c");
    await trial.others.mutex("c").acquire();
    await meet();
    expect(await trial.locks.findDeadlocks()).toEqual([]);
  });

  it("is not misled by meta of other programs", async () => {
    await trial.locks.mutex("a").acquire();
    for (const inside of [7, [null], [{ name: "a", token: "x" }], [{ name: "a", token: "1" }]]) {
      void watch(trial.others.mutex("a", { meta: { inside } }).acquire());
    }
    await settled();
    expect(await trial.locks.findDeadlocks()).toEqual([]);
  });
});
