import type { Question } from "../contest.js";
import { crashQuestion } from "../takeover.js";
import { candidatesFor } from "./candidates.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const TTL_MS = 1_000;

export const crash: Question = crashQuestion({
  store: "redis",
  rounds: 9,
  ttlMs: TTL_MS,
  slackMs: 50,
  holder: new URL("./holder.js", import.meta.url),
  async heirs(isQuick) {
    const port = await redis.start();
    return candidatesFor(isQuick)
      .filter(({ role }) => role !== "floor")
      .map(({ name, role, open }) => {
        return { name, role, order: { port }, open: () => open(port, TTL_MS) };
      });
  },
  close: () => redis.stop(),
});
