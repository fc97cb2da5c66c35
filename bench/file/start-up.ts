import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Question } from "../contest.js";
import { atMost } from "../goals.js";
import { started } from "../started.js";
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
    const env = { HOLDFAST_STORE: `file:${join(bench.make(), "locks.db")}` };
    return [
      started(RUN, "holdfast", [MAIN, "run", "x", "--", "true"], env),
      started(EMPTY, "floor", ["-e", "0"], env),
    ];
  },
  goals(of) {
    const most = process.getBuiltinModule("node:sqlite") ? 1.6 : 1.9;
    return [atMost(most, `the time of ${EMPTY}`, of(RUN), of(EMPTY))];
  },
  close: () => bench.remove(),
};
