import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Contestant, Question } from "../contest.js";
import { BenchFolder } from "./bench-folder.js";

const bench = new BenchFolder();
const MAIN = fileURLToPath(new URL("../../../../dist/cli/main.js", import.meta.url));
const RUN = "holdfast run x -- true";
const EMPTY = "node -e 0";

export const startUp: Question = {
  store: "file",
  name: "start-up",
  title: "from the start of the command to its end",
  about: "The cost of a lock around a command that does nothing.",
  unit: "ms",
  better: "lower",
  reason:
    "Above an empty program: the command itself, the binding of SQLite where Node has none, " +
    "and two shells to start, the launcher and the guard. Newer versions of Node start an empty " +
    "program in less than half the time, and all else takes as long as before.",
  rounds: 41,
  async contestants() {
    const store = join(bench.make(), "locks.db");
    const started = (
      name: string,
      role: Contestant["role"],
      args: readonly string[],
    ): Contestant => ({
      name,
      role,
      round: async () => {
        const startMs = performance.now();
        const child = spawn(process.execPath, args, {
          stdio: "ignore",
          env: { ...process.env, HOLDFAST_STORE: `file:${store}` },
        });
        const [code] = await once(child, "exit");
        if (code !== 0) throw new Error(`it ended with ${code}`);
        return { value: performance.now() - startMs };
      },
    });
    return [
      started(RUN, "holdfast", [MAIN, "run", "x", "--", "true"]),
      started(EMPTY, "floor", ["-e", "0"]),
    ];
  },
  goals(of) {
    const value = of(RUN).median / of(EMPTY).median;
    const most = process.getBuiltinModule("node:sqlite") ? 1.6 : 1.9;
    return [{ text: `at most ${most} × the time of ${EMPTY}`, value, isMet: value <= most }];
  },
  close: () => bench.remove(),
};
