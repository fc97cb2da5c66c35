import type { FaultProxy } from "./proxy.js";

/** A message that Redis sends to a subscriber unasked: "subscribe", "message" and others. */
export interface PushChoice {
  readonly kind: "subscribe" | "message";
  /** Default: every channel. */
  readonly channel?: (channel: string) => boolean;
}

/** Passes or drops the next push of that kind. Resolves when the push has reached the proxy. */
export function nextPush(
  proxy: FaultProxy,
  { kind, channel = () => true }: PushChoice,
  verdict: "pass" | "drop",
): Promise<void> {
  return new Promise((resolve) => {
    const remove = proxy.onReply((reply) => {
      if (!reply.pushed || !Array.isArray(reply.value)) return undefined;
      const [first, second] = reply.value;
      if (first !== kind || !channel(String(second))) return undefined;
      remove();
      resolve();
      return verdict;
    });
  });
}
