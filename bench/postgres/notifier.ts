/** Notifies another process and reports how long each notification took to get there. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { endWithParent } from "../forked.js";
import { nowMs } from "../turns.js";

const { url, forMs, isListener } = JSON.parse(process.argv[2] ?? "{}");

endWithParent();
const client = new pg.Client({ connectionString: url });
await client.connect();

if (isListener) {
  client.on("notification", ({ payload }) => process.send?.(nowMs() - Number(payload)));
  await client.query("listen raw");
  process.send?.("ready");
} else {
  const file = fileURLToPath(import.meta.url);
  const listener = fork(file, [JSON.stringify({ url, isListener: true })]);
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
    const text = "select pg_notify('raw', $1)";
    await client.query({ name: "notify", text, values: [String(nowMs())] });
  });
}
