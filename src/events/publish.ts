import { AsyncResource } from "node:async_hooks";
import {
  type Channel,
  channel,
  type TracingChannel,
  tracingChannel,
} from "node:diagnostics_channel";
import type { Store } from "../contract/store.js";
import { NO_LIMIT, type Request } from "../rules/fits.js";
import { jsonOf } from "../rules/json.js";
import type { Space } from "../rules/name.js";
import {
  type AcquireEvent,
  type CallContext,
  channels,
  type LockKind,
  type RequestEvent,
  type RunEvent,
} from "./events.js";

/** The channels. Without subscribers, an event costs one check of `hasSubscribers`. */
export const events: {
  readonly run: TracingChannel<unknown, RunEvent>;
  readonly acquire: TracingChannel<unknown, AcquireEvent>;
} & Readonly<Record<Exclude<keyof typeof channels, "run" | "acquire">, Channel>> = {
  run: tracingChannel<unknown, RunEvent>(channels.run),
  acquire: tracingChannel<unknown, AcquireEvent>(channels.acquire),
  held: channel(channels.held),
  renew: channel(channels.renew),
  release: channel(channels.release),
  lost: channel(channels.lost),
  detached: channel(channels.detached),
  handoff: channel(channels.handoff),
  revoked: channel(channels.revoked),
  foreign: channel(channels.foreign),
  polling: channel(channels.polling),
  warning: channel(channels.warning),
};

/**
 * The fields of a lock that events carry. A class, because events are made for every acquisition,
 * and a shared `toJSON` is cheaper than one per object.
 */
class Description implements RequestEvent {
  readonly name: string;
  readonly space: Space;
  readonly kind: LockKind;
  readonly weight: number;
  readonly limit: number | null;
  readonly store: string;
  readonly namespace: string;

  constructor({ name, namespace = "" }: Store, kind: LockKind, request: NamedRequest) {
    this.name = request.name;
    this.space = request.space;
    this.kind = kind;
    this.weight = request.weight;
    this.limit = request.limit === NO_LIMIT ? null : request.limit;
    this.store = name;
    this.namespace = namespace;
  }

  toJSON(): unknown {
    return jsonOf({ ...this });
  }
}

interface NamedRequest extends Request {
  readonly name: string;
  readonly space: Space;
}

/** Creates an event about a lock, to which the caller may assign more fields. */
export function describe(store: Store, kind: LockKind, request: NamedRequest): RequestEvent {
  return new Description(store, kind, request);
}

/**
 * Captures the async context of the current call; undefined if no event has subscribers. Timers and
 * sockets run in the context of the call that created them, which may belong to another request, so
 * events published from there must be published in the context of their own call.
 */
export function callContext(): CallContext | undefined {
  const { held, renew, lost, handoff } = events;
  const isNeeded =
    held.hasSubscribers || renew.hasSubscribers || lost.hasSubscribers || handoff.hasSubscribers;
  return isNeeded ? new AsyncResource("HOLDFAST_CALL") : undefined;
}

/** A context outside all calls, for leases acquired before there was a subscriber. */
export const NO_CALL: CallContext = new AsyncResource("HOLDFAST_NO_CALL");

/** Publishes in the context of a call, or outside all calls. */
export function publishIn(context: CallContext | undefined, to: Channel, event: object): void {
  (context ?? NO_CALL).runInAsyncScope(() => to.publish(event));
}
