import { formatDuration } from "../duration.js";
import type { Counter } from "./counter.js";
import { TTL_MS } from "./protocol.js";
import type { Trial } from "./trial.js";

/** How much later than the ttl of a dead holder the next grant may come, on a busy machine. */
const SLACK_MS = 1_500;

/** Each promise with the number that shows whether it was kept. */
export function verdict(
  trial: Trial,
  bare: Counter,
  { killMs, stopMs }: { killMs: number; stopMs: number },
): { text: string; isGood: boolean } {
  const { counter, refused, grants, disorder } = trial;
  const latestMs = TTL_MS + SLACK_MS;
  const [stale] = refused;
  const lost = bare.writes - bare.value;
  const took = `${formatDuration(killMs)} after SIGKILL, ${formatDuration(stopMs)} after SIGSTOP`;
  const promises = [
    {
      isKept: counter.value === counter.writes && counter.writes > 0,
      text:
        `counter exact: ${counter.value} after ${counter.writes} increments ` +
        `(without a lock ${lost} of ${bare.writes} were lost)`,
    },
    {
      isKept: disorder === 0 && grants > 0,
      text: `tokens risen: ${grants} grants, each with a higher token than all before`,
    },
    {
      isKept: stale !== undefined && stale.token < stale.by,
      text: "stale write refused by its token after the holder was stopped and continued",
    },
    {
      isKept: killMs <= latestMs && stopMs <= latestMs,
      text: `takeover ${took} (ttl ${formatDuration(TTL_MS)})`,
    },
  ];
  const isGood = promises.every(({ isKept }) => isKept);
  const lines = promises.map(({ isKept, text }) => `  ${isKept ? "kept  " : "BROKEN"}  ${text}`);
  const next = ["", "Try it:  npm start -- run backup -- sleep 5", "         npm start -- --help"];
  const title = isGood ? "Verdict: the lock held." : "Verdict: the lock did NOT hold.";
  return { text: [title, ...lines, ...next].join("\n"), isGood };
}
