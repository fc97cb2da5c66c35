/**
 * Removes marks whose time is over. ZooKeeper keeps a mark for ever, and a name that is never used
 * again is never read again. So a client that leaves marks reads the queues of some names from time
 * to time: a reader removes the marks whose time is over.
 */
import type { Port } from "../../time/port.js";
import { childrenIn } from "./queue-reader.js";
import type { WatchTools } from "./queue-watches.js";

const EVERY_MS = 10 * 60_000;
const MAX_NAMES = 1_000;
const CALL_MS = 5_000;

export class MarkSweep {
  readonly #tools: WatchTools;
  readonly #port: Port;
  #lastMs = Number.NEGATIVE_INFINITY;

  constructor(tools: WatchTools, port: Port) {
    this.#tools = tools;
    this.#port = port;
  }

  /** This client has left a mark. */
  onMark(): void {
    const nowMs = this.#port.clock.nowMs();
    if (nowMs - this.#lastMs < EVERY_MS) return;
    this.#lastMs = nowMs;
    // The next sweep may reach the marks that this one does not.
    this.#sweep().catch(() => {});
  }

  async #sweep(): Promise<void> {
    const { session, layout, reader } = this.#tools;
    const root = layout.space("once");
    const { names } = await session.use((one) => one.send(childrenIn(root)), CALL_MS);
    const queues = names.flatMap((child) => layout.nameIn(child) ?? []);
    // Another part each time.
    const first = Math.floor(this.#port.random.fraction() * queues.length);
    for (const name of [...queues.slice(first), ...queues.slice(0, first)].slice(0, MAX_NAMES)) {
      await session.use((one) => reader.read(one, { space: "once", name }, "plain"), CALL_MS);
    }
  }
}
