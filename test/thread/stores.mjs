// A process with several stores in one thread, which does what the test says.
import { subscribe } from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import { BroadcastChannel } from "node:worker_threads";
import { connect } from "../../dist/index.js";

const [verb = "", ...urls] = process.argv.slice(2);
const ttlMs = 600_000;
let threads = 0;
let exits = 0;
subscribe("worker_threads", (message) => {
  threads += 1;
  const { worker } = /** @type {{ worker: import("node:worker_threads").Worker }} */ (message);
  worker.on("exit", () => {
    exits += 1;
  });
});

/** @param {object} message */
const note = (message) => writeSync(1, `${JSON.stringify(message)}\n`);

/** @param {object} order */
function breakThread(order) {
  const channel = new BroadcastChannel("thread-hook");
  channel.postMessage(order);
  channel.close();
}

/** @param {any} error */
const shown = ({ code, reason, detail, retryable, message }) => ({
  code,
  reason,
  detail,
  retryable,
  message,
});

/** @param {any} lease */
const lossOf = (lease) =>
  new Promise((resolve) => {
    const onAbort = () => resolve(shown(lease.signal.reason));
    if (lease.signal.aborted) onAbort();
    else lease.signal.addEventListener("abort", onAbort);
  });

const open = () => Promise.all(urls.map((url) => connect(url, { thread: true, ttlMs })));
const all = await open();
const [first, second = first] = all;

switch (verb) {
  case "share": {
    const leases = await Promise.all(all.map((locks) => locks.mutex("m").acquire()));
    await first?.close();
    const states = leases.map(({ state }) => state);
    const isAnswered = await second?.mutex("other").run(() => true);
    const openThreads = threads - exits;
    await Promise.all(all.slice(1).map((locks) => locks.close()));
    const left = threads - exits;
    const again = await open();
    note({ states, isAnswered, openThreads, left, threads });
    await Promise.all(again.map((locks) => locks.close()));
    break;
  }
  case "break": {
    const lease = await first?.mutex("m").acquire();
    const broken = await second?.mutex("m").acquire();
    const lost = lossOf(broken);
    const brokenPort = Number(new URL(urls[1] ?? "").port);
    breakThread({ brokenPort });
    const call = await second?.mutex("n").tryAcquire().catch(shown);
    await lease?.renew();
    note({ lost: await lost, call, state: lease?.state, threads, exits });
    await lease?.release();
    await second?.close();
    breakThread({});
    const again = await connect(urls[1] ?? "", { thread: true });
    note({ isOpen: await again.mutex("n").run(() => true), threads });
    await again.close();
    await first?.close();
    break;
  }
  case "hang": {
    const lease = await first?.mutex("m").acquire();
    breakThread({ isStuck: true });
    await new Promise((resume) => setTimeout(resume, 100));
    /** @param {() => Promise<unknown> | undefined} call */
    const timed = async (call) => {
      const startMs = performance.now();
      await Promise.resolve(call()).catch(() => {});
      return Math.round(performance.now() - startMs);
    };
    const [releaseMs, lookMs] = await Promise.all([
      timed(() => lease?.release()),
      timed(() => first?.inspect("m")),
    ]);
    const closeMs = await timed(() => first?.close());
    const again = await connect(urls[0] ?? "", { thread: true });
    const isOpen = await again.mutex("n").run(() => true);
    await again.close();
    note({ releaseMs, lookMs, closeMs, isOpen, threads });
    break;
  }
  case "die":
  case "fatal": {
    const leases = await Promise.all(all.map((locks) => locks.mutex("m").acquire()));
    // Their answers are not heard, and nothing else keeps this process alive.
    breakThread({ isDeaf: true });
    const calls = all.map((locks) => locks.inspect("m").catch(shown));
    setTimeout(() => breakThread(verb === "die" ? { exitCode: 7 } : { isFatal: true }), 200);
    note({ calls: await Promise.all(calls), states: leases.map(({ state }) => state) });
  }
}
