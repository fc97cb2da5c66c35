/** Sends a line to another process over a unix socket, and reports how long each took to return. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";

const { path, forMs, pauseMs, isAnswering } = JSON.parse(process.argv[2] ?? "{}");

endWithParent();
if (isAnswering) {
  rmSync(path, { force: true });
  const server = createServer((socket) => socket.on("data", (data) => socket.write(data)));
  server.listen(path, () => process.send?.("ready"));
} else {
  const file = fileURLToPath(import.meta.url);
  const other = fork(file, [JSON.stringify({ path, isAnswering: true })]);
  await once(other, "message");
  const socket = connect(path);
  const times: number[] = [];
  for (const untilMs = nowMs() + forMs; nowMs() < untilMs; ) {
    // As long as a holder keeps the lock in the contest: both processes are as cold as there.
    await new Promise((resume) => setTimeout(resume, pauseMs));
    const sentMs = nowMs();
    socket.write("ping\n");
    await once(socket, "data");
    times.push(nowMs() - sentMs);
  }
  other.kill("SIGKILL");
  process.send?.(times, () => process.exit(0));
}
