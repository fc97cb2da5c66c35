/** The program of the thread: opens the store, and serves it. */
import { subscribe } from "node:diagnostics_channel";
import { workerData } from "node:worker_threads";
import { channels } from "../events.js";
import { openStore } from "../open-store.js";
import { localPort, useClock } from "../time/port.js";
import { sharedClock } from "../time/shared-clock.js";
import { copyOfError } from "./error-copy.js";
import { ExitSignal } from "./exit-release.js";
import type { FromThread, Opened, ThreadOptions, ToThread } from "./messages.js";
import { Outbox } from "./outbox.js";
import { StoreHost } from "./store-host.js";

const { clock, exit, port } = workerData as ThreadOptions;
const outbox = new Outbox<FromThread>(port, localPort.timers.soon);
const exitSignal = new ExitSignal(exit);
let host: StoreHost | undefined;

async function open(url: string): Promise<Opened> {
  // Before the store is opened: its deadlines must be by the clock of the other thread.
  useClock(sharedClock(clock));
  const store = await openStore(url);
  host = new StoreHost(store, outbox);
  const { name, namespace, traits } = store;
  const [explains, examines] = [store.explain !== undefined, store.examine !== undefined];
  return { name, namespace, traits, explains, examines };
}

function receive(message: ToThread): void {
  if (host) return host.receive(message, () => exitSignal.give());
  if (message.type !== "call") return;
  const { id, name, args } = message;
  // A sign of life is asked for while a slow store is opened.
  const answer = name === "open" ? open(args[0] as string) : Promise.resolve(null);
  answer.then(
    (value) => outbox.post({ type: "answer", id, value }),
    (error: unknown) => outbox.post({ type: "failure", id, error: copyOfError(error) }),
  );
}

/** Subscribers are in the other thread. */
for (const channel of ["foreign", "polling"] as const) {
  subscribe(channels[channel], (message) => {
    const { error, ...event } = message as { error?: unknown };
    const copy = error === undefined ? {} : { error: copyOfError(error) };
    outbox.post({ type: "published", channel, event, ...copy });
  });
}

port.on("message", (messages: readonly ToThread[]) => messages.forEach(receive));
