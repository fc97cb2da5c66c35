/** Publishes to another process and reports how long each message took to get there. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";

const { port, forMs, isListener } = JSON.parse(process.argv[2] ?? "{}");

endWithParent();

if (isListener) {
  const client = new Redis(port);
  client.on("message", (_channel, sentMs) => process.send?.(nowMs() - Number(sentMs)));
  await client.subscribe("raw");
  process.send?.("ready");
} else {
  const file = fileURLToPath(import.meta.url);
  const listener = fork(file, [JSON.stringify({ port, isListener: true })]);
  const client = new Redis(port);
  const lags: number[] = [];
  let untilMs = Number.POSITIVE_INFINITY;
  listener.on("message", async (message) => {
    if (typeof message === "number") lags.push(message);
    else untilMs = nowMs() + forMs;
    if (nowMs() >= untilMs) {
      listener.kill("SIGKILL");
      process.send?.(lags, () => process.exit(0));
      return;
    }
    // As long as a holder keeps the lock in the contest: both processes are as cold as there.
    await new Promise((resume) => setTimeout(resume, 25));
    await client.publish("raw", String(nowMs()));
  });
}
