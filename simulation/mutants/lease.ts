import type { Mutant } from "./mutant.js";

/** In the life of a lease: keeper, hold and wait. */
export const lease: readonly Mutant[] = [
  {
    title: "assertHeld looks at a flag",
    file: "lease/keeper.js",
    find: "if (hold.isLive && this.#store.port.clock.exactMs() >= hold.deadlineMs) {",
    replace: "if (false) {",
  },
  {
    title: "sleep is not counted",
    file: "lease/keeper.js",
    find: "if (hold.isLive && this.#store.port.clock.exactMs() >= hold.deadlineMs) {",
    replace: "if (hold.isLive && this.#store.port.clock.nowMs() >= hold.deadlineMs) {",
  },
  {
    title: "the deadline passes without a word",
    file: "lease/keeper.js",
    find: `this.#lose(hold, hold.endReason, "");
                continue;`,
    replace: `this.#holds.remove(hold);
                continue;`,
  },
  {
    title: "the keeper sleeps with the machine",
    file: "lease/keeper.js",
    find: "Math.min(Math.max(1, next.dueMs - nowMs), LONGEST_NAP_MS)",
    replace: "Math.max(1, next.dueMs - nowMs)",
  },
  {
    title: "renewed past the deadline",
    file: "lease/keeper.js",
    find: "if (nowMs >= hold.deadlineMs) {",
    replace: `if (hold.renews && nowMs >= hold.deadlineMs) {
                hold.dueMs = nowMs + hold.ttlMs / 6;
                this.#holds.update(hold);
                batch.push(hold);
                continue;
            }
            if (nowMs >= hold.deadlineMs) {`,
    also: {
      file: "stores/arbiter/renewals.js",
      find: "if (this.#port.clock.exactMs() >= grant.deadlineMs) {",
      replace: "if (false) {",
    },
  },
  {
    title: "a cleanup that fails is nobody's business",
    file: "lease/keeper.js",
    find: "this.#store.release(hold.grant, CLEANUP_MS).catch(() => { });",
    replace: "this.#store.release(hold.grant, CLEANUP_MS);",
  },
  {
    title: "no answer is a loss",
    file: "lease/keeper.js",
    find: 'if (renewal.type === "gone")',
    replace: 'if (renewal.type !== "renewed")',
  },
  {
    title: "renewals come too late",
    file: "lease/keeper.js",
    find: "isRenewed ? hold.renewalDueMs(sentMs)",
    replace: "isRenewed ? sentMs + hold.ttlMs * 2",
  },
  {
    title: "the grace is ignored",
    file: "lease/hold.js",
    find: "return this.deadlineMs - this.graceMs;",
    replace: "return this.deadlineMs;",
  },
  {
    title: "maxHoldMs is ignored",
    file: "lease/hold.js",
    find: "return Math.min(this.grant.deadlineMs, this.endMs);",
    replace: "return this.grant.deadlineMs;",
  },
  {
    title: "the wait has no end",
    file: "lease/wait-time.js",
    find: 'this.end("time");',
    replace: "{}",
  },
  {
    title: "a settled wait keeps its timer",
    file: "lease/wait-time.js",
    find: "this.#timer?.cancel();\n        if (this.#signal)",
    replace: "if (this.#signal)",
  },
];
