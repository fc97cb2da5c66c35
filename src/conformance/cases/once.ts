import assert from "node:assert/strict";
import type { Behaviour } from "../needs.js";
import { needMarks } from "../needs.js";
import { BRIEF_WAIT_MS, briefly, PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

const keepMs = 60_000;
const failWork = () => assert.fail("ran a second time");

/** Work that ends when the case says so. */
interface ControlledWork<T> {
  readonly begun: Promise<void>;
  run(): Promise<T>;
  finish(value: T): void;
}

function controlledWork<T>(): ControlledWork<T> {
  let begin: () => void = () => {};
  const begun = new Promise<void>((resume) => (begin = resume));
  let finish: (value: T) => void = () => {};
  const finished = new Promise<T>((resume) => (finish = resume));
  const run = (): Promise<T> => {
    begin();
    return finished;
  };
  return { begun, run, finish: (value) => finish(value) };
}

/**
 * Resolves when the work runs. A holder that `inspect` shows is no proof of that: on a busy machine
 * the answer to its acquire may come too late. The client then withdraws the attempt before any
 * work runs, and another client may run the work first.
 */
async function begins({ begun }: ControlledWork<unknown>, call: Promise<unknown>): Promise<void> {
  await within(PATIENCE_MS, "the work runs", Promise.race([begun, call]));
}

export const once: readonly Behaviour[] = [
  {
    title: "once: a second caller is told whether the work is running or done, and by which client",
    needs: needMarks,
    async run(context) {
      const [a, b] = [await context.openKnown(), await context.openKnown()];
      const work = controlledWork<number>();
      const first = a.once("job", work.run, { keepMs, meta: { job: "first" } });
      await begins(work, first);
      await until("it is shown", async () => (await b.inspect("job", "once")).holders.length === 1);
      const second = await b.once("job", failWork, { keepMs });
      assert.ok(!second.ran && second.state === "running");
      assert.equal(second.by?.job, "first");
      const waiting = [a, b].map((locks) => {
        return locks.once("job", failWork, { keepMs, waitMs: PATIENCE_MS });
      });
      const other = b.once("job", failWork, { keepMs, waitMs: BRIEF_WAIT_MS });
      const timedOut = await briefly(other);
      if (timedOut) assert.ok(!timedOut.ran && timedOut.state === "running");

      work.finish(7);
      const ran = await first;
      assert.ok(ran.ran && ran.value === 7);
      for (const told of await within(PROMPT_MS, "waiters are told", Promise.all(waiting))) {
        assert.deepEqual(
          [told.ran, !told.ran && told.state, told.token],
          [false, "done", ran.token],
        );
      }
      const late = await b.once("job", failWork, { keepMs });
      assert.ok(!late.ran && late.state === "done");
      assert.deepEqual([late.token, late.by?.job], [ran.token, "first"]);
    },
  },
  {
    title: "once: after a failure, a waiting caller runs the work",
    needs: needMarks,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const work = controlledWork<number>();
      const fails = () => work.run().then(() => assert.fail("the work failed"));
      const failing = a.once("job", fails, { keepMs });
      await begins(work, failing);
      const waiting = b.once("job", () => "took over", { keepMs, waitMs: PATIENCE_MS });
      await until("it waits", async () => (await b.inspect("job", "once")).waiters.length === 1);
      work.finish(0);
      await assert.rejects(failing, { message: "the work failed" });
      const taken = await within(PROMPT_MS, "the waiter takes over", waiting);
      assert.ok(taken.ran && taken.value === "took over");
      const late = await a.once("job", failWork, { keepMs });
      assert.ok(!late.ran && late.state === "done");
    },
  },
  {
    title: "once: a lost lease leaves no mark",
    needs: needMarks,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const lost = a.once(
        "job",
        async ({ token, signal }) => {
          const told = new Promise((resume) => signal.addEventListener("abort", resume));
          assert.equal(await b.revoke("job", { token, reason: "test" }, "once"), true);
          await told;
        },
        { keepMs },
      );
      await assert.rejects(lost, { code: "HF_LEASE_LOST" });
      const again = await b.once("job", () => "ran", { keepMs });
      assert.ok(again.ran && again.value === "ran");
    },
  },
  {
    title: "once: the mark ends after keepMs, or when it is revoked",
    needs: needMarks,
    async run(context) {
      const locks = await context.open();
      const first = await locks.once("job", () => 1, { keepMs: 1_500 });
      const again = () => locks.once("job", () => 2, { keepMs });
      assert.equal((await again()).ran, false);
      const second = await until("it may run again", async () => {
        const result = await again();
        return result.ran && result;
      });
      assert.ok(first.ran && second.token > first.token);
      const { mark } = await locks.inspect("job", "once");
      assert.equal(mark?.token, second.token);
      assert.equal(await locks.revoke("job", { token: first.token, reason: "t" }, "once"), false);
      assert.equal(await locks.revoke("job", { token: second.token, reason: "t" }, "once"), true);
      assert.equal((await again()).ran, true);
    },
  },
];
