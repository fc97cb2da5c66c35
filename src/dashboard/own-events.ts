import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channels, type LostEvent, type RenewEvent } from "../events/events.js";
import type { Timeline } from "./timeline.js";

/**
 * Counts the losses and the failed renewals of this process, from now on, whether there is a viewer
 * or not. Returns how to end it.
 */
export function countOwnEvents(timeline: Timeline, wallMs: () => number): () => void {
  const onLost = (event: unknown): void => timeline.addLoss(wallMs(), (event as LostEvent).reason);
  const onRenew = (event: unknown): void => {
    if ((event as RenewEvent).outcome === "failed") timeline.addFailedRenewal(wallMs());
  };
  subscribe(channels.lost, onLost);
  subscribe(channels.renew, onRenew);
  return () => {
    unsubscribe(channels.lost, onLost);
    unsubscribe(channels.renew, onRenew);
  };
}
