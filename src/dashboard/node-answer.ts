import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

/** Frameworks that read the body or cut the path leave both here. */
interface MountedMessage extends IncomingMessage {
  readonly originalUrl?: string;
  readonly body?: unknown;
}

/** Answers a request of Node by a handler that speaks Fetch. Never rejects. */
export async function answerNode(
  handle: (request: Request) => Promise<Response>,
  message: MountedMessage,
  response: ServerResponse,
): Promise<void> {
  // A connection that breaks is the end of its stream, and no error of the host.
  response.on("error", () => {});
  try {
    const request = requestOf(message);
    if (!request) {
      response.writeHead(400).end();
      return;
    }
    await send(await handle(request), response);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
    if (response.headersSent) response.destroy();
    else response.writeHead(500).end();
  }
}

/** Methods that Fetch has no requests for. */
const NO_REQUEST: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"]);

/** Null where the address cannot be read, or the method has no meaning here. */
function requestOf(message: MountedMessage): Request | null {
  const { method = "GET", originalUrl, url = "/" } = message;
  if (NO_REQUEST.has(method.toUpperCase())) return null;
  const headers = new Headers();
  for (const [name, value] of Object.entries(message.headers)) {
    if (!name.startsWith(":") && value !== undefined) headers.set(name, [value].flat().join(", "));
  }
  const host = message.headers.host ?? message.headers[":authority"];
  if (typeof host === "string") headers.set("host", host);
  // The host is judged by its header alone, so that no odd value of it changes the path.
  const path = originalUrl ?? url;
  if (!path.startsWith("/") || !URL.canParse(`http://dashboard${path}`)) return null;
  const isRead = method === "GET" || method === "HEAD";
  const body = isRead ? null : bodyOf(message);
  return new Request(`http://dashboard${path}`, {
    method,
    headers,
    ...(body !== null && { body, duplex: "half" }),
  } as RequestInit);
}

function bodyOf(message: MountedMessage): string | ReadableStream {
  const { body } = message;
  if (body === undefined) return Readable.toWeb(message) as ReadableStream;
  return typeof body === "string" ? body : JSON.stringify(body);
}

async function send({ status, headers, body }: Response, response: ServerResponse): Promise<void> {
  response.writeHead(status, Object.fromEntries(headers));
  response.flushHeaders();
  if (!body) {
    response.end();
    return;
  }
  const reader = body.getReader();
  response.on("close", () => void reader.cancel().catch(() => {}));
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!response.write(part.value)) await drained(response);
  }
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const onEither = (): void => {
      response.off("drain", onEither);
      response.off("close", onEither);
      resolve();
    };
    response.on("drain", onEither);
    response.on("close", onEither);
  });
}
