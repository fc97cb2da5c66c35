import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const running = new Set<ChildProcess>();

/** A process of ours that is told its order, and answers by messages. */
export function forked(program: URL, order: object): ChildProcess {
  const child = fork(fileURLToPath(program), [JSON.stringify(order)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

/** Before their servers go, of which they would complain. */
export function endForked(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** For such a process: its parent is gone, and no one reads its answer. */
export function endWithParent(): void {
  process.once("disconnect", () => process.exit());
}
