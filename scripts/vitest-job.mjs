// One run of vitest, which ends: by itself, or killed after a silence that no test may cause.
import { duration } from "./progress.mjs";
import { runTool } from "./run.mjs";
import { SilenceLimit } from "./silence-limit.mjs";

/** @typedef {import("./vitest-events.mjs").Event} Event */

/** To start vitest, and to load a module with all that it imports. */
const START_MS = 5 * 60_000;

/**
 * Runs vitest, which has to use the reporter of vitest-events.mjs. A file that was planned and did
 * not end is a failure, whatever the reason.
 *
 * @param {readonly string[]} args
 * @param {(event: Event) => void} onEvent
 * @param {import("./run.mjs").RunOptions & { startMs?: number }} [options]
 * @returns {Promise<{ code: number, output: string }>}
 */
export async function runVitest(args, onEvent, { startMs = START_MS, ...options } = {}) {
  const ending = new AbortController();
  /** @type {Map<string, { patienceMs: number, tests: Set<string> }>} */
  const running = new Map();
  /** @type {Set<string>} */
  const left = new Set();
  let patienceMs = startMs;
  let silence = "";
  const limit = new SilenceLimit(limitMs, () => {
    silence = `Nothing happened for ${duration(limitMs())}, which no test may take: killed.`;
    ending.abort();
  });

  function limitMs() {
    return Math.max(patienceMs, ...[...running.values()].map((file) => file.patienceMs));
  }

  /** @param {Event} event */
  function follow(event) {
    limit.progress();
    switch (event.type) {
      case "planned":
        for (const file of event.files) left.add(file);
        patienceMs = Math.max(startMs, event.patienceMs);
        break;
      case "started":
        running.set(event.file, { patienceMs: 0, tests: new Set() });
        break;
      case "collected": {
        const file = running.get(event.file);
        if (file) file.patienceMs = event.patienceMs;
        break;
      }
      case "test started":
        running.get(event.file)?.tests.add(event.test);
        break;
      case "test ended":
        running.get(event.file)?.tests.delete(event.test);
        break;
      case "ended":
        running.delete(event.file);
        left.delete(event.file);
        break;
    }
    onEvent(event);
  }

  const result = await runTool("vitest/vitest.mjs", args, {
    ...options,
    quiet: true,
    onMessage: follow,
    signal: ending.signal,
  });
  limit.stop();
  const reason = silence || `vitest ended with code ${result.code}.`;
  const files = [...running].map(([file, { tests }]) => [file, ...tests].join(": "));
  const wereRunning = `${reason}\nRunning: ${files.join("; ") || "no file"}`;
  for (const file of left) {
    const text = running.has(file)
      ? `Did not end. ${wereRunning}\n${result.output}`
      : `Was not run. ${wereRunning}`;
    onEvent({ type: "failed", failure: { file, test: null, text: text.trimEnd() } });
    onEvent({ type: "ended", file, passed: 0, skipped: 0, ms: 0 });
  }
  return { code: silence ? 1 : result.code, output: `${silence}\n${result.output}`.trim() };
}
