import { type Channel, channel, tracingChannel } from "node:diagnostics_channel";
import {
  type Attributes,
  context,
  isSpanContextValid,
  type Span,
  type SpanContext,
  SpanStatusCode,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import {
  type AcquireEvent,
  channels,
  type LostEvent,
  type RenewEvent,
  type RunEvent,
} from "../../events/events.js";
import { knownOptions } from "../../options/known-options.js";
import { type Subscription, subscription } from "../subscription.js";

/** Where the spans go. */
export interface TracesOptions {
  /** The provider of the tracer. Default: the global one, which the SDK sets. */
  readonly tracerProvider?: TracerProvider | undefined;
}

/**
 * Traces all locks of this process by OpenTelemetry: a span `holdfast.acquire` for each wait, and a
 * span `holdfast.run` around `run`, `tryRun`, `once` and `lead`, which is active in the body. A
 * wait links to the span by which the holder in the way acquired the lock, in whichever process.
 * Start it after the SDK.
 *
 * @example
 * import { startTraces } from "holdfast/opentelemetry";
 *
 * using traces = startTraces();
 * await locks.mutex("invoice:42").run((lease) => save(lease.token));
 */
export function startTraces(options?: TracesOptions): Subscription {
  const example = "must be an object: { tracerProvider }";
  const { tracerProvider = trace } = knownOptions(options, ["tracerProvider"], example);
  const spans = new LockSpans(tracerProvider.getTracer("holdfast"));
  return subscription(() => spans.stop());
}

type Traced = (AcquireEvent | RunEvent) & { readonly error?: unknown };

/** The spans that are open, by the event of their call. */
class LockSpans {
  readonly #tracer: Tracer;
  readonly #open = new Map<unknown, Span>();
  readonly #listeners: readonly (readonly [Channel, (event: unknown) => void])[];

  constructor(tracer: Tracer) {
    this.#tracer = tracer;
    const [run, acquire] = [tracingChannel(channels.run), tracingChannel(channels.acquire)];
    this.#listeners = [
      [run.start, (event) => this.#onRun(event as RunEvent)],
      [run.asyncEnd, (event) => this.#onRunEnd(event as RunEvent)],
      [acquire.start, (event) => this.#onAsk(event as AcquireEvent)],
      [acquire.asyncEnd, (event) => this.#onAnswer(event as AcquireEvent)],
      [channel(channels.lost), (event) => onLost(event as LostEvent)],
      [channel(channels.renew), (event) => onRenewal(event as RenewEvent)],
    ];
    for (const [of, listener] of this.#listeners) of.subscribe(listener);
  }

  /** A span that is never ended is never exported. */
  stop(): void {
    for (const [of, listener] of this.#listeners) of.unsubscribe(listener);
    for (const span of this.#open.values()) span.end();
    this.#open.clear();
  }

  #onRun(event: RunEvent): void {
    const span = this.#start("holdfast.run", event);
    const inside = trace.setSpan(context.active(), span);
    const outer = event.around ?? ((run) => run());
    event.around = (run) => context.with(inside, () => outer(run));
  }

  #onRunEnd(event: RunEvent): void {
    this.#end(event, isFailed(event));
  }

  #onAsk(event: AcquireEvent): void {
    const traceparent = traceparentOf(this.#start("holdfast.acquire", event));
    if (traceparent !== null) event.traceparent = traceparent;
  }

  #onAnswer(event: AcquireEvent): void {
    const { holder, ahead } = event;
    const span = this.#open.get(event);
    const held = spanContextOf(holder?.meta.traceparent);
    if (held) span?.addLink({ context: held, attributes: { "holdfast.link": "holder" } });
    if (typeof ahead === "number") span?.setAttribute("holdfast.ahead", ahead);
    // Contention is no error.
    this.#end(event, event.outcome === "error");
  }

  #start(name: string, event: Traced): Span {
    const { store, namespace, kind, name: lock } = event;
    const span = this.#tracer.startSpan(name, {
      attributes: {
        "holdfast.store": store,
        "holdfast.namespace": namespace,
        "holdfast.kind": kind,
        "holdfast.name": lock,
      },
    });
    this.#open.set(event, span);
    return span;
  }

  #end(event: Traced, isError: boolean): void {
    const span = this.#open.get(event);
    if (!span) return;
    this.#open.delete(event);
    const { outcome, token, error } = event;
    if (outcome !== undefined) span.setAttribute("holdfast.outcome", outcome);
    if (token !== undefined) span.setAttribute("holdfast.token", `${token}`);
    if (isError) fail(span, error);
    span.end();
  }
}

/** A call that did not get the lock fails only if it rejects. */
function isFailed({ outcome, error }: Traced): boolean {
  return outcome === "failed" || outcome === "lost" || error !== undefined;
}

function fail(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof Error) span.recordException(error);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}

/** These events come in the context of the call that acquired the lease: its span tells of them. */
function onLost({ name, token, reason, heldMs }: LostEvent): void {
  tell("holdfast.lost", name, token, { "holdfast.reason": reason, "holdfast.held_ms": heldMs });
}

function onRenewal({ outcome, name, token, remainingMs, error }: RenewEvent): void {
  if (outcome === "renewed") return;
  tell("holdfast.renewal_failed", name, token, {
    "holdfast.remaining_ms": remainingMs,
    ...(error instanceof Error ? { "exception.message": error.message } : {}),
  });
}

function tell(event: string, name: string, token: bigint, attributes: Attributes): void {
  const about = { "holdfast.name": name, "holdfast.token": `${token}`, ...attributes };
  trace.getActiveSpan()?.addEvent(event, about);
}

const FORMAT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The span as W3C Trace Context writes it; null where no SDK makes spans. */
function traceparentOf(span: Span): string | null {
  const { traceId, spanId, traceFlags } = span.spanContext();
  if (!isSpanContextValid(span.spanContext())) return null;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

/** The text comes from the store, where any client may have written it. */
export function spanContextOf(text: unknown): SpanContext | null {
  const [, traceId, spanId, flags] = typeof text === "string" ? (FORMAT.exec(text) ?? []) : [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return isSpanContextValid(found) ? found : null;
}
