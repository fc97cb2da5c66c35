import type { Question } from "../contest.js";
import { crashQuestion } from "../takeover.js";
import { BenchFolder } from "./bench-folder.js";
import { candidates } from "./candidates.js";

const bench = new BenchFolder();
/** The least that proper-lockfile takes. */
const TTL_MS = 2_000;

export const crash: Question = crashQuestion({
  store: "file",
  rounds: 5,
  ttlMs: TTL_MS,
  slackMs: 50,
  holder: new URL("./holder.js", import.meta.url),
  async heirs() {
    const folder = bench.make();
    return candidates
      .filter(({ role }) => role !== "floor")
      .map(({ name, role, open }) => {
        return { name, role, order: { folder, lock: "crash" }, open: () => open(folder, TTL_MS) };
      });
  },
  close: () => bench.remove(),
});
