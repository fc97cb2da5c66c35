// A process that contends for a lock until a message ends it. While it holds, it writes the token
// and the time of a clock that all processes of the machine share. The time is read before the
// lease is asked, so the process held at that time. The file outlives a kill.
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../dist/index.js";

const [url = "", name = "", file = "", workers = "1", ttlMs = "1000"] = process.argv.slice(2);
const beliefs = openSync(file, "a");
const locks = await connect(url, { fairness: "strict" });
const end = new AbortController();
process.on("message", () => end.abort());

async function contend() {
  while (!end.signal.aborted) {
    const options = { ttlMs: Number(ttlMs), storeTimeoutMs: 30_000, signal: end.signal };
    const lease = await locks
      .mutex(name)
      .acquire(options)
      .catch(() => null);
    if (!lease) continue;
    for (let step = 0; step < 4; step += 1) {
      const nowUs = process.hrtime.bigint() / 1000n;
      if (lease.remainingMs() > 0) writeSync(beliefs, `${lease.token} ${nowUs}\n`);
      await sleep(2);
    }
    await lease.release();
  }
}

process.send?.("ready");
await Promise.all(Array.from({ length: Number(workers) }, contend));
await locks.close();
process.disconnect();
