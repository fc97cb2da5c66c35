import { AsyncResource } from "node:async_hooks";
import {
  type Channel,
  channel,
  type TracingChannel,
  tracingChannel,
} from "node:diagnostics_channel";
import {
  type AcquireEvent,
  type CallContext,
  channels,
  type LockKind,
  type RequestEvent,
  type RunEvent,
} from "./events.js";
import { withJson } from "./json.js";
import { NO_LIMIT, type Request } from "./rules/fits.js";
import type { Space } from "./rules/name.js";
import type { Store } from "./store.js";

/** With no subscriber an event costs one look at `hasSubscribers`. */
export const events: {
  readonly run: TracingChannel<unknown, RunEvent>;
  readonly acquire: TracingChannel<unknown, AcquireEvent>;
} & Readonly<Record<"renew" | "release" | "lost" | "handoff" | "revoked" | "foreign", Channel>> = {
  run: tracingChannel<unknown, RunEvent>(channels.run),
  acquire: tracingChannel<unknown, AcquireEvent>(channels.acquire),
  renew: channel(channels.renew),
  release: channel(channels.release),
  lost: channel(channels.lost),
  handoff: channel(channels.handoff),
  revoked: channel(channels.revoked),
  foreign: channel(channels.foreign),
};

/** The fields of a lock that events carry. */
export function describe(
  { name: store, namespace = "" }: Store,
  kind: LockKind,
  { name, space, weight, limit }: Request & { readonly name: string; readonly space: Space },
): RequestEvent {
  return { name, space, kind, weight, limit: limit === NO_LIMIT ? null : limit, store, namespace };
}

/**
 * The async context of the call that is made now. A timer or a socket runs in the context of the
 * call that opened it, which may belong to another request. An event that is published from there
 * needs the context of its own call. Undefined while no event has subscribers.
 */
export function callContext(): CallContext | undefined {
  const { renew, lost, handoff } = events;
  const isNeeded = renew.hasSubscribers || lost.hasSubscribers || handoff.hasSubscribers;
  return isNeeded ? new AsyncResource("HOLDFAST_CALL") : undefined;
}

/** A context outside of all calls: for leases acquired before the first subscriber came. */
export const NO_CALL: CallContext = new AsyncResource("HOLDFAST_NO_CALL");

/** Publishes in the context of a call, or outside of all calls. */
export function publishIn(context: CallContext | undefined, to: Channel, event: object): void {
  (context ?? NO_CALL).runInAsyncScope(() => to.publish(withJson(event)));
}
