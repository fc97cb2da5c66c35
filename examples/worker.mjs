// A service that works under a lock until SIGTERM or SIGINT tells it to stop: while it waits, or in
// the middle of its work. The lock is given back, and the exit code is 0.
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

const locks = new Holdfast(memoryStore());
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => stop.abort());

async function work(signal) {
  for (let job = 1; job <= 3; job += 1) {
    console.log(`job ${job}`);
    await sleep(100, undefined, { signal });
  }
}

try {
  await locks
    .mutex("worker")
    .run((lease) => work(AbortSignal.any([lease.signal, stop.signal])), { signal: stop.signal });
} catch (error) {
  if (!stop.signal.aborted) throw error; // told to stop, in the wait or in the work
} finally {
  await locks.close();
}
console.log(stop.signal.aborted ? "told to stop" : "all done");
