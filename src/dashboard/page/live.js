import { ask, RefusedError } from "./api.js";

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
const SILENCE_MS = 90_000;
export async function follow(query, signal, onMessage, onState) {
  let pauseMs = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      for await (const message of messages(query, signal)) {
        if (signal.aborted) return;
        pauseMs = FIRST_PAUSE_MS;
        onState({ is: "open" });
        onMessage(message);
      }
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
async function* messages(query, signal) {
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
function pause(durationMs, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, durationMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
