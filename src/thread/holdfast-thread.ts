/** The program of the thread: serves the stores that the other thread asks for. */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe } from "node:diagnostics_channel";
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { channels } from "../events/events.js";
import { openStore } from "../stores/open-store.js";
import { localRuntime, useClock } from "../time/runtime.js";
import { sharedClock } from "../time/shared-clock.js";
import { copyOfError } from "./error-copy.js";
import { ExitSignal } from "./exit-release.js";
import type { FromThread, Opened, ServeRequest, ThreadOptions, ToThread } from "./messages.js";
import { Backlog, Outbox } from "./outbox.js";
import { StoreHost } from "./store-host.js";

/** One store of the thread, from the request for it to its end. */
class ServedStore {
  readonly outbox: Outbox<FromThread>;
  readonly #port: MessagePort;
  readonly #exitSignal: ExitSignal;
  #host: StoreHost | null = null;
  #hasEnded = false;

  constructor({ port, exit, backlog }: ServeRequest) {
    this.#port = port;
    this.outbox = new Outbox<FromThread>(port, localRuntime.timers.soon, new Backlog(backlog));
    this.#exitSignal = new ExitSignal(exit);
  }

  receive(message: ToThread): void {
    if (this.#host) return this.#host.receive(message, () => this.#exitSignal.give());
    if (message.type !== "call") return;
    const { id, name, args } = message;
    // A sign of life is asked for while a slow store is opened.
    const answer = name === "open" ? this.#open(args[0] as string) : Promise.resolve(null);
    answer.then(
      (value) => this.outbox.post({ type: "answer", id, value }),
      (error: unknown) => this.outbox.post({ type: "failure", id, error: copyOfError(error) }),
    );
  }

  /** The caller has closed the port. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#host?.close();
  }

  /**
   * The store threw where no call awaits it, such as in a socket event. Whatever it was doing is
   * half done: it may take one answer for another, so nothing that it says counts from now on.
   */
  fail(error: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    const copy = copyOfError(error);
    const abandoned = this.#host?.abandon(`the store failed in its thread: ${copy.message}`);
    this.outbox.post({ type: "failed", error: copy });
    this.outbox.flush();
    const close = (): void => this.#port.close();
    if (abandoned) abandoned.then(close, close);
    else close();
  }

  async #open(url: string): Promise<Opened> {
    const store = await openStore(url);
    this.#host = new StoreHost(store, this.outbox);
    if (this.#hasEnded) await this.#host.close();
    const { name, namespace, traits } = store;
    const [explains, examines] = [store.explain !== undefined, store.examine !== undefined];
    return { name, namespace, traits, explains, examines };
  }
}

/** The store that the code under way works for. */
const working = new AsyncLocalStorage<ServedStore>();

// Before a store is opened: its deadlines must be by the clock of the other thread.
useClock(sharedClock((workerData as ThreadOptions).holdfastClock));

/** Subscribers are in the other thread. */
for (const channel of ["foreign", "polling", "warning"] as const) {
  subscribe(channels[channel], (message) => {
    const { error, ...event } = message as { error?: unknown };
    const copy = error === undefined ? {} : { error: copyOfError(error) };
    working.getStore()?.outbox.offer({ type: "published", channel, event, ...copy });
  });
}

process.on("uncaughtException", (error) => {
  const store = working.getStore();
  // It may concern every store, so the thread ends.
  if (!store) throw error;
  store.fail(error);
});

parentPort?.on("message", (request: ServeRequest) => {
  const store = new ServedStore(request);
  const { port } = request;
  port.on("message", (messages: readonly ToThread[]) => {
    working.run(store, () => {
      for (const message of messages) store.receive(message);
    });
  });
  port.on("close", () => working.run(store, () => void store.end()));
});
