import type { FaultProxy } from "./proxy.js";

/** A message that a server sends unasked; Redis sends "subscribe", "message" and others. */
export interface PushChoice {
  readonly kind: "subscribe" | "message";
  /** Default: every channel. */
  readonly channel?: (channel: string) => boolean;
}

/** Passes, drops or omits the next push of that kind. Resolves when it has reached the proxy. */
export function nextPush(
  proxy: FaultProxy,
  { kind, channel = () => true }: PushChoice,
  verdict: "pass" | "drop" | "omit",
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
