import { isSpanContextValid, type Span, type SpanContext } from "@opentelemetry/api";

const FORMAT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The span as W3C Trace Context writes it; null where no SDK makes spans. */
export function traceparentOf(span: Span): string | null {
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
