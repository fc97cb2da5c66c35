// A process that holds a lock and then blocks, exits, fails or loses its thread, as the test says.
import { subscribe } from "node:diagnostics_channel";
import { writeSync } from "node:fs";
import { connect } from "../../dist/index.js";

const [url = "", verb = "", options = "{}"] = process.argv.slice(2);
/** @type {import("node:worker_threads").Worker | undefined} */
let worker;
subscribe("worker_threads", (message) => {
  worker = /** @type {{ worker: import("node:worker_threads").Worker }} */ (message).worker;
});

/** The monotonic clock of the machine, which the test reads, too. */
const machineMs = () => Number(process.hrtime.bigint()) / 1e6;

/**
 * Blocks the event loop, without work for the processor.
 *
 * @param {number} durationMs
 */
function block(durationMs) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

/** @param {unknown} message */
const tell = (message) => new Promise((resolve) => process.send?.(message, resolve));

/**
 * Writes a line that the test reads after the end of this process.
 *
 * @param {object} message
 */
const note = (message) => writeSync(1, `${JSON.stringify(message)}\n`);

/** @param {unknown} error */
function shown(error) {
  const { name, code, reason, detail, retryable } = /** @type {any} */ (error);
  return { name, code, reason, detail, retryable };
}

/**
 * Blocks until a lease is lost, and tells how the first look after it found that.
 *
 * @param {number} limitMs
 */
function blockUntilLost(limitMs = Number.POSITIVE_INFINITY) {
  // The process may be stopped before its first look: until then only the grant is known.
  let heldMs = firstGrantedMs;
  for (const untilMs = machineMs() + limitMs; ; ) {
    if (machineMs() >= untilMs) return { heldMs, state: lease.state };
    const lookMs = machineMs();
    try {
      lease.assertHeld();
      heldMs = lookMs;
    } catch (error) {
      return { heldMs, error: shown(error), state: lease.state };
    }
    block(5);
  }
}

const { blocks = 1, blockMs = 0, ...given } = JSON.parse(options);
const isExit = ["exit", "fail", "end"].includes(verb);
// Before the listener of the package, and behind it.
if (isExit) process.on("exit", () => note({ stateBefore: lease.state }));
const locks = await connect(url, given);
if (isExit) process.on("exit", () => note(blockUntilLost(3_000)));
if (verb === "wait") {
  const waiting = locks.mutex("m").acquire();
  await new Promise((resume) => process.once("message", resume));
  // In one turn: once the test hears of it, no grant can be taken before the block.
  process.send?.({ blocking: true });
  block(blockMs);
  await tell({ unblockedMs: machineMs() });
  const late = await waiting;
  await tell({ token: `${late.token}`, state: late.state });
  await locks.close();
  process.exit();
}
const lease = await locks.mutex("m").acquire();
const firstGrantedMs = machineMs();
await tell({ token: `${lease.token}`, isHeld: true });

switch (verb) {
  case "block": {
    // A lease that is lost stays lost: the next block needs another one.
    for (let left = blocks, held = lease, grantedMs = firstGrantedMs; left > 0; ) {
      const looks = [];
      while (left > 0 && looks.every(({ state }) => state === "held")) {
        block(blockMs);
        const { state } = held;
        looks.push({ state, isTold: held.signal.aborted });
        left -= 1;
      }
      const releasingMs = machineMs();
      const released = await held.release();
      await tell({ token: `${held.token}`, grantedMs, looks, releasingMs, released });
      if (left === 0) break;
      held = await locks.mutex("m").acquire();
      grantedMs = machineMs();
    }
    await locks.close();
    process.disconnect();
    break;
  }
  case "lose": {
    const lost = blockUntilLost();
    await tell({ ...lost, aborted: shown(lease.signal.reason) });
    await locks.close();
    process.disconnect();
    break;
  }
  case "exit":
    process.exit(3);
    break;
  case "fail":
    setImmediate(() => {
      throw new Error("a fault of the program");
    });
    break;
  case "end":
    // A held lease does not keep the process alive.
    process.disconnect();
    break;
  case "release":
    void lease.release();
    process.exit();
    break;
  case "withdraw":
    process.on("message", () => process.exit());
    await locks.mutex("taken").acquire();
    break;
  case "terminate": {
    const refused = locks.mutex("taken").acquire().catch(shown);
    await worker?.terminate();
    const stateAfter = lease.state;
    const pending = await refused;
    const next = await locks.mutex("n").acquire().catch(shown);
    const lost = await new Promise((resolve) => {
      const onAbort = () => resolve(shown(lease.signal.reason));
      if (lease.signal.aborted) onAbort();
      else lease.signal.addEventListener("abort", onAbort);
      // A lease alone does not keep the process alive.
      setTimeout(() => {}, 60_000).ref();
    });
    // Another thread.
    const again = await connect(url, given);
    const isOpen = await again.mutex("n").run(() => true);
    await tell({ stateAfter, pending, next, lost, isOpen });
    process.exit();
  }
}
