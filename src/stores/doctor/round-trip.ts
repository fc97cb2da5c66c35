import { note, ok, type Verdict, warning } from "../../contract/checks.js";
import { renewAfterMs } from "../../rules/renewal-pace.js";
import type { Clock } from "../../time/clock.js";

/** The time of a request and its answer, over some of them. */
export interface RoundTrip {
  readonly slowestMs: number;
  readonly count: number;
}

const COUNT = 25;
/** No further request is sent after this. */
const ENOUGH_MS = 500;

/** `ask` sends the cheapest request that the store answers. */
export async function measureRoundTrip(
  clock: Clock,
  ask: () => Promise<unknown>,
): Promise<RoundTrip> {
  const startMs = clock.nowMs();
  let slowestMs = 0;
  let count = 0;
  for (let sentMs = startMs; count < COUNT && sentMs - startMs < ENOUGH_MS; count += 1) {
    await ask();
    const answeredMs = clock.nowMs();
    slowestMs = Math.max(slowestMs, answeredMs - sentMs);
    sentMs = answeredMs;
  }
  return { slowestMs, count };
}

export function judgeRoundTrip({ slowestMs, count }: RoundTrip, ttlMs: number): Verdict {
  const seen = `The slowest of ${count} round trips took ${slowestMs.toFixed(1)} ms`;
  const everyMs = renewAfterMs(ttlMs);
  const why = `A renewal is due every ${Math.round(everyMs)} ms, and its answer within the ttl.`;
  const remedy = "Choose a longer ttlMs, or find out what makes the way to the store slow.";
  if (slowestMs >= everyMs) return warning(`${seen}, more than a third of the ttl.`, why, remedy);
  if (slowestMs >= everyMs / 3) return note(`${seen}, more than a ninth of the ttl.`, why, remedy);
  return ok(`${seen}.`);
}
