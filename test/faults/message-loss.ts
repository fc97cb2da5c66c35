import { type Choice, chooser } from "./chosen-request.js";
import type { ProxiedRequest } from "./framing.js";
import type { FaultProxy } from "./proxy.js";

export interface LossChoice extends Choice {
  /**
   * "reset": the connection is reset instead of the message. "drop": the message and all later ones
   * in that direction are lost, and the connection stays open. Default "reset".
   */
  readonly how?: "reset" | "drop";
}

/** A loss that is armed and waits for its message. */
export interface PendingLoss {
  /** Resolves when the message is lost. */
  readonly struck: Promise<ProxiedRequest>;
  cancel(): void;
}

/** Loses the reply: the request takes effect at the server. */
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

/** Loses the request: it does not reach the server. */
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
