import {
  type Channel,
  channel,
  type TracingChannel,
  tracingChannel,
} from "node:diagnostics_channel";
import { type AcquireEvent, channels } from "./events.js";

/** With no subscriber an event costs one look at `hasSubscribers`. */
export const events: {
  readonly acquire: TracingChannel<unknown, AcquireEvent>;
} & Readonly<Record<"renew" | "release" | "lost" | "handoff" | "revoked" | "foreign", Channel>> = {
  acquire: tracingChannel<unknown, AcquireEvent>(channels.acquire),
  renew: channel(channels.renew),
  release: channel(channels.release),
  lost: channel(channels.lost),
  handoff: channel(channels.handoff),
  revoked: channel(channels.revoked),
  foreign: channel(channels.foreign),
};
