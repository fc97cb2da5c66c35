import type { LiveMessage } from "../message.js";
import { ask, RefusedError } from "./api.js";

/** The state of the connection to the dashboard, which is not that of the store. */
export type LinkState =
  | { readonly is: "opening" | "open" | "broken" }
  | { readonly is: "refused"; readonly status: number; readonly problem: string };

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
/** The dashboard says something more often than this. */
const SILENCE_MS = 90_000;

/** Reads the live stream until the signal aborts, and opens it again when it breaks. */
export async function follow(
  query: string,
  signal: AbortSignal,
  onMessage: (message: LiveMessage) => void,
  onState: (state: LinkState) => void,
): Promise<void> {
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      for await (const message of messages(query, signal)) {
        if (signal.aborted) return;
        pauseMs = FIRST_PAUSE_MS;
        onState({ is: "open" });
        onMessage(message);
      }
      // The dashboard ends each stream after a while, to authorize it again.
      continue;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof RefusedError && error.status < 500) {
        onState({ is: "refused", status: error.status, problem: error.message });
        return;
      }
    }
    onState({ is: "broken" });
    await pause(pauseMs, signal);
    pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
  }
}

async function* messages(query: string, signal: AbortSignal): AsyncGenerator<LiveMessage, void> {
  const silence = new AbortController();
  const both = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  try {
    const { body } = await ask(`live?${query}`, { signal: both });
    if (!body) return;
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const events = (rest + part.value).split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) yield JSON.parse(event.slice("data: ".length));
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

function pause(durationMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, durationMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
