import type { Question } from "../contest.js";
import { crashQuestion } from "../takeover.js";
import { candidates } from "./candidates.js";
import { BenchEtcd } from "./server.js";

const etcd = new BenchEtcd();
const TTL_MS = 3_000;

export const crash: Question = crashQuestion({
  store: "etcd",
  rounds: 5,
  ttlMs: TTL_MS,
  // etcd looks for leases that are over every half second, and revokes them by a proposal.
  slackMs: 1_000,
  holder: new URL("./holder.js", import.meta.url),
  async heirs() {
    const url = await etcd.start();
    return candidates
      .filter(({ role }) => role !== "floor")
      .map(({ name, role, open }) => {
        return { name, role, order: { url }, open: () => open(url, TTL_MS) };
      });
  },
  close: () => etcd.stop(),
});
