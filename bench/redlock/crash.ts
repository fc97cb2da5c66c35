import type { Question } from "../contest.js";
import { crashQuestion } from "../takeover.js";
import { candidates, open } from "./candidates.js";
import { BenchNodes } from "./nodes.js";

const nodes = new BenchNodes();
const TTL_MS = 2_000;

export const crash: Question = crashQuestion({
  store: "redlock",
  rounds: 5,
  ttlMs: TTL_MS,
  slackMs: 100,
  holder: new URL("./holder.js", import.meta.url),
  async heirs() {
    const ports = await nodes.start();
    return candidates.map(({ name, role }) => {
      return { name, role, order: { ports }, open: () => open(name, ports, TTL_MS) };
    });
  },
  close: () => nodes.stop(),
});
