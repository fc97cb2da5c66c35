import { type Choice, chooser } from "./chosen-request.js";
import type { ProxiedRequest } from "./framing.js";
import type { FaultProxy } from "./proxy.js";

export interface LossChoice extends Choice {
  /**
   * "reset": the connection breaks in place of the message. "drop": it falls silent in that
   * direction, as behind a network that is gone. Default "reset".
   */
  readonly how?: "reset" | "drop";
}

/** A loss that waits for its message. */
export interface PendingLoss {
  /** Resolves when it has struck. */
  readonly struck: Promise<ProxiedRequest>;
  cancel(): void;
}

/** The request takes effect at the server; its reply does not reach the client. */
export function loseReply(
  proxy: FaultProxy,
  { how = "reset", ...choice }: LossChoice = {},
): PendingLoss {
  const chosen = chooser(choice);
  return pendingLoss((strike) =>
    proxy.onReply((reply) => {
      const request = reply.to ?? { bytes: reply.bytes, command: "", args: [] };
      if (reply.pushed || !chosen(request)) return undefined;
      strike(request);
      return how;
    }),
  );
}

/** The request does not reach the server. */
export function loseRequest(
  proxy: FaultProxy,
  { how = "reset", ...choice }: LossChoice = {},
): PendingLoss {
  const chosen = chooser(choice);
  return pendingLoss((strike) =>
    proxy.onRequest((request) => {
      if (!chosen(request)) return undefined;
      strike(request);
      return how;
    }),
  );
}

function pendingLoss(
  register: (strike: (request: ProxiedRequest) => void) => () => void,
): PendingLoss {
  let cancel = () => {};
  const struck = new Promise<ProxiedRequest>((resolve) => {
    cancel = register((request) => {
      cancel();
      resolve(request);
    });
  });
  return { struck, cancel };
}
