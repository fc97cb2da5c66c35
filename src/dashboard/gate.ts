/**
 * Refuses requests that a foreign web page made a browser send. Each check stops an attack by
 * itself:
 *
 * - `Host` must be known: a page whose own name resolves to this address (DNS rebinding) sends its
 *   own name there.
 * - `Sec-Fetch-Site` and `Origin`, which pages cannot choose, must name this very origin.
 * - Requests for data carry a header that a page of another origin may send only after a preflight,
 *   which is never answered.
 */
import type { FailureAnswer } from "./message.js";

/** Every request for data or to change something has it. */
export const PAGE_HEADER = "x-holdfast-dashboard";

const LOCAL_HOSTS: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** No inline code, nothing from elsewhere, no frame around it, no markup made from text. */
const CONTENT_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": CONTENT_POLICY,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** A response with the headers that every response of the dashboard has. */
export function answer(
  status: number,
  type: string,
  body: string | ReadableStream | null,
): Response {
  return new Response(body, { status, headers: { ...SAFE_HEADERS, "content-type": type } });
}

export function jsonAnswer(body: object): Response {
  return answer(200, "application/json", JSON.stringify(body));
}

/** Proxies and middleware that compress or collect a stream would keep its messages back. */
export function streamAnswer(body: ReadableStream): Response {
  const response = answer(200, "text/event-stream", body);
  response.headers.set("cache-control", "no-store, no-transform");
  response.headers.set("x-accel-buffering", "no");
  return response;
}

export function refusal(status: number, error: string): Response {
  return answer(status, "application/json", JSON.stringify({ error } satisfies FailureAnswer));
}

export class Gate {
  readonly #hosts: readonly string[];

  /** `hosts`: names, with a port where only that one counts. */
  constructor(hosts: readonly string[] = LOCAL_HOSTS) {
    this.#hosts = hosts.map((host) => host.toLowerCase());
  }

  /** The refusal of a request for a page or its parts; null when it may pass. */
  checkPage(request: Request): Response | null {
    const host = hostOf(request);
    const name = host.replace(/:\d+$/, "");
    if (this.#hosts.includes(host) || this.#hosts.includes(name)) return null;
    return refusal(403, "This host is not in the option `hosts` of the dashboard.");
  }

  /** The same for a request for data, or to change something. */
  checkData(request: Request): Response | null {
    const { headers } = request;
    const site = headers.get("sec-fetch-site");
    if (site !== null && site !== "same-origin") return refusal(403, "The request is cross-site.");
    const origin = headers.get("origin");
    if (origin !== null && !isOf(origin, hostOf(request))) {
      return refusal(403, "The origin of the request is not that of the dashboard.");
    }
    if (headers.has(PAGE_HEADER)) return null;
    return refusal(403, `The request lacks the header ${PAGE_HEADER}.`);
  }
}

function hostOf(request: Request): string {
  return (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
}

function isOf(origin: string, host: string): boolean {
  const ours = `http://${host}`;
  return URL.canParse(origin) && URL.canParse(ours) && new URL(origin).host === new URL(ours).host;
}
