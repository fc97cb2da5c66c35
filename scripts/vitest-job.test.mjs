import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SilenceLimit } from "./silence-limit.mjs";
import { runVitest } from "./vitest-job.mjs";

/** @typedef {import("./vitest-events.mjs").Event} Event */

const root = join(import.meta.dirname, "..");
const SILENCE_MS = 4_000;

/** @type {string} */
let folder;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-run-"));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  write(
    "vitest.config.mjs",
    `import { VitestEvents } from ${JSON.stringify(join(root, "scripts/vitest-events.mjs"))};
     class ByName { shard(files) { return files; }
       sort(files) { return files.sort((a, b) => (a.moduleId < b.moduleId ? -1 : 1)); } }
     export default { test: { reporters: [new VitestEvents()], maxWorkers: 1,
       testTimeout: ${SILENCE_MS}, hookTimeout: 100, sequence: { sequencer: ByName } } };`,
  );
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/**
 * @param {string} name
 * @param {string} text
 */
function write(name, text) {
  writeFileSync(join(folder, name), text);
}

async function run() {
  /** @type {Event[]} */
  const events = [];
  // A vitest that is killed leaves its temporary files behind.
  const options = { cwd: folder, startMs: SILENCE_MS, env: { TMPDIR: folder } };
  const { code } = await runVitest(["run"], (event) => events.push(event), options);
  const failed = events.flatMap((event) => {
    return event.type === "failed" ? `${event.failure.file}: ${event.failure.text}` : [];
  });
  return { code, events, failed };
}

describe("a run of vitest", () => {
  it("that hangs is killed with its children, and what was not run has failed", async () => {
    write(
      "a.test.ts",
      `import { it } from "vitest";
       it("passes", () => {});`,
    );
    write(
      "b.test.ts",
      `import { spawn } from "node:child_process";
       import { writeFileSync } from "node:fs";
       import { setTimeout } from "node:timers/promises";
       import { it } from "vitest";
       it("blocks", async () => {
         const child = spawn("sleep", ["1000"], { detached: true, stdio: "inherit" });
         writeFileSync("pid", String(child.pid));
         await setTimeout(500);
         for (;;);
       });
       it("waits for it", () => {});`,
    );
    write("c.test.ts", `import { it } from "vitest"; it("is not run", () => {});`);
    const { code, events, failed } = await run();
    expect(code).toBe(1);
    expect(failed).toEqual([
      expect.stringMatching(/^b\.test\.ts: Did not end\. Nothing happened for .*killed/),
      expect.stringMatching(/^c\.test\.ts: Was not run\.[\s\S]*Running: b\.test\.ts: blocks$/),
    ]);
    const ended = events.flatMap((event) => (event.type === "ended" ? event.file : []));
    expect(ended).toEqual(["a.test.ts", "b.test.ts", "c.test.ts"]);
    const stat = `/proc/${readFileSync(join(folder, "pid"), "utf8")}/stat`;
    if (process.platform === "linux") {
      const state = existsSync(stat) ? /\) (\w)/.exec(readFileSync(stat, "utf8"))?.[1] : "gone";
      expect(["gone", "Z"]).toContain(state);
    }
  });

  it("may take any time while tests end", async () => {
    write(
      "slow.test.ts",
      `import { setTimeout } from "node:timers/promises";
       import { it } from "vitest";
       it.each([1, 2, 3, 4])("%i", () => setTimeout(${SILENCE_MS / 2}));`,
    );
    const { code, failed } = await run();
    expect(failed).toEqual([]);
    expect(code).toBe(0);
  });

  it("that crashes has failed in all files that were not run", async () => {
    write(
      "a.test.ts",
      `import { it } from "vitest";
       it("fails", () => { throw new Error("first"); });`,
    );
    write(
      "b.test.ts",
      `import { setTimeout } from "node:timers/promises";
       import { it } from "vitest";
       it("kills vitest", async () => {
         await setTimeout(500);
         process.kill(process.ppid, "SIGKILL");
       });`,
    );
    write("c.test.ts", `import { it } from "vitest"; it("is not run", () => {});`);
    const { code, failed } = await run();
    expect(code).not.toBe(0);
    expect(failed.map((text) => text.slice(0, 22))).toEqual([
      "a.test.ts: Error: firs",
      "b.test.ts: Did not end",
      "c.test.ts: Was not run",
    ]);
  });
});

describe("the limit of silence", () => {
  const start = (/** @type {number} */ limitMs) => {
    const onSilent = vi.fn();
    return { limit: new SilenceLimit(() => limitMs, onSilent), onSilent };
  };

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  });
  afterEach(() => vi.useRealTimers());

  it("is reset by progress, and not by anything else", () => {
    const { limit, onSilent } = start(60_000_000);
    vi.advanceTimersByTime(59_000_000);
    limit.progress();
    vi.advanceTimersByTime(59_000_000);
    expect(onSilent).not.toHaveBeenCalled();
    limit.stop();
  });

  it("does not count the time of a machine that was asleep", () => {
    const { limit, onSilent } = start(60_000);
    vi.setSystemTime(0);
    for (let round = 0; round < 50; round += 1) {
      vi.spyOn(performance, "now").mockReturnValue(round * 3_600_000);
      vi.advanceTimersToNextTimer();
    }
    expect(onSilent).not.toHaveBeenCalled();
    for (let round = 50; round < 10_000; round += 1) {
      vi.spyOn(performance, "now").mockReturnValue(round * 3_600_000);
      vi.advanceTimersToNextTimer();
    }
    expect(onSilent).toHaveBeenCalledTimes(1);
    limit.stop();
  });
});
