import { MessageChannel, Worker, workerData } from "node:worker_threads";
import { UnsupportedError } from "../errors/index.js";
import { localRuntime } from "../time/runtime.js";
import { clockMemory } from "../time/shared-clock.js";
import { within } from "../time/timers.js";
import { ExitSignal } from "./exit-release.js";
import type { ServeRequest, ThreadOptions } from "./messages.js";
import { Backlog } from "./outbox.js";
import { type LinkedThread, ThreadConnection } from "./thread-connection.js";

/** A thread that does not end within this is left to the end of the process. */
const END_MS = 10_000;

/** The way to one store. */
interface StoreLink {
  readonly link: ThreadConnection;
  readonly exitSignal: ExitSignal;
  /** See `sharedClock`. */
  readonly clock: SharedArrayBuffer;
}

/**
 * The worker thread of all stores that this process opened with `thread: true`. It starts with the
 * first of them and ends with the last. If it ends by itself, it takes all of them along; the next
 * store starts another one.
 */
class StoreThread implements LinkedThread {
  static #current: StoreThread | null = null;
  readonly #clock: SharedArrayBuffer = clockMemory();
  readonly #worker: Worker;
  readonly #links = new Set<ThreadConnection>();

  private constructor() {
    this.#worker = startWorker({ holdfastClock: this.#clock });
    this.#worker.on("error", (error) => this.#onEnd(error));
    this.#worker.on("exit", (code) => this.#onEnd(new Error(`exit code ${code}`)));
    this.#worker.unref();
  }

  /** The thread of this process; starts it if there is none. */
  static get(): StoreThread {
    if ((workerData as Partial<ThreadOptions> | null)?.holdfastClock) throw insideThread();
    StoreThread.#current ??= new StoreThread();
    return StoreThread.#current;
  }

  /** A way to one more store, which the first call through it opens. */
  link(): StoreLink {
    const { port1, port2 } = new MessageChannel();
    const exitSignal = new ExitSignal();
    const backlog = new Backlog();
    const request: ServeRequest = { port: port2, exit: exitSignal.memory, backlog: backlog.memory };
    this.#worker.postMessage(request, [port2]);
    const link = new ThreadConnection(this, port1, backlog, localRuntime.timers);
    this.#links.add(link);
    return { link, exitSignal, clock: this.#clock };
  }

  /** Further stores are opened in another thread: this one may never speak again. */
  onSilence(): void {
    if (StoreThread.#current === this) StoreThread.#current = null;
  }

  async onClose(link: ThreadConnection): Promise<void> {
    this.#links.delete(link);
    if (this.#links.size > 0) return;
    this.onSilence();
    await within(localRuntime.timers, END_MS, this.#worker.terminate()).catch(() => {});
  }

  #onEnd(error: Error): void {
    this.onSilence();
    for (const link of this.#links) link.onThreadEnd(error);
  }
}

/** A way to one more store, through a thread that has started. */
export async function linkToThread(): Promise<StoreLink> {
  let link: ThreadConnection | undefined;
  try {
    const thread = StoreThread.get();
    const linked = thread.link();
    link = linked.link;
    await link.start();
    return linked;
  } catch (error) {
    await link?.close();
    throw startError(error);
  }
}

/** Says what to do about a thread that did not start. */
function startError(error: unknown): unknown {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } };
  switch (cause?.code ?? code) {
    case "ERR_MODULE_NOT_FOUND":
    case "MODULE_NOT_FOUND":
    // A CommonJS bundle has no URL.
    case "ERR_INVALID_URL": {
      const advice = "If the program is bundled, leave holdfast out of the bundle.";
      const message = `The file of the thread was not found. ${advice}`;
      return new UnsupportedError(message, { cause: error });
    }
    case "ERR_ACCESS_DENIED": {
      const advice = "Start node with --allow-worker, or connect without thread.";
      const message = `Node's permission model does not allow a thread. ${advice}`;
      return new UnsupportedError(message, { cause: error });
    }
    default:
      return error;
  }
}

/**
 * A thread inherits the flags of `node`. Flags of TLS, of DNS and of module loaders matter to a
 * store, so they are left as they are. Only `--input-type` refuses a file; a string may import it.
 */
function startWorker(data: ThreadOptions): Worker {
  // Apart from `new URL`, or webpack would make a chunk of the file, which cannot run. The name is
  // ours alone: a bundle may be next to a `worker.js` of its program.
  const here = import.meta.url;
  const file = new URL("./holdfast-thread.js", here);
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ""];
  const options = { name: "holdfast", workerData: data };
  return flags.some((flag) => flag.includes("--input-type"))
    ? new Worker(`import(${JSON.stringify(file.href)})`, { ...options, eval: true })
    : new Worker(file, options);
}

function insideThread(): UnsupportedError {
  const message =
    "A module that Node preloads (--import, --require) connects with thread: true, " +
    "and so it does in the thread itself. Connect only if isMainThread is true.";
  return new UnsupportedError(message);
}
