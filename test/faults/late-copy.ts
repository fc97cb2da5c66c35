import { type Reply, RespClient, RespError } from "../servers/resp.js";
import { type Choice, chooser } from "./chosen-request.js";
import type { ProxiedRequest } from "./framing.js";
import type { FaultProxy } from "./proxy.js";
import type { ProxyLink } from "./proxy-link.js";

/** A request that was kept back on its way to the server. */
export interface HeldRequest {
  /** Resolves when the request is kept back, with all requests after it. */
  readonly caught: Promise<ProxiedRequest>;
  /**
   * Sends the request to the server on its own connection, even if the client has disconnected.
   * Resolves with the server's reply: an error as a value, undefined without RESP framing.
   */
  deliver(): Promise<Reply | undefined>;
}

export interface HoldChoice extends Choice {
  /** Whether the client's connection breaks when the request is kept back. Default false. */
  readonly resets?: boolean;
}

/** Keeps back the chosen request: the server does not get it until `deliver`. */
export function holdRequest(
  proxy: FaultProxy,
  { resets = false, ...choice }: HoldChoice = {},
): HeldRequest {
  const caught = catchRequest(proxy, choice, "hold");
  return {
    caught: caught.then(({ request, link }) => {
      if (resets) link.reset();
      return request;
    }),
    async deliver() {
      const { request, link } = await caught;
      const reply = nextReply(proxy, link, request);
      link.requests.release();
      return await reply;
    },
  };
}

/** A copy of a request that was passed on. */
export interface RecordedRequest {
  readonly caught: Promise<ProxiedRequest>;
  /**
   * Sends the copy to the server once more and resolves with the reply, an error as a value.
   * "new": on a connection of its own, after the commands in `before` (such as SELECT).
   * "old": on the connection of the recorded request, after the client has disconnected; the proxy
   * keeps that connection to the server open.
   */
  replay(on: "new" | "old", before?: readonly (readonly string[])[]): Promise<Reply | undefined>;
}

/** Records the chosen request and passes it on. Keeps its connection to the server open. */
export function recordRequest(proxy: FaultProxy, choice: Choice = {}): RecordedRequest {
  const caught = catchRequest(proxy, choice, "pass");
  return {
    caught: caught.then(({ request }) => request),
    async replay(on, before = []) {
      const { request, link } = await caught;
      if (on === "new") return await sendOnNewConnection(proxy.targetPort, request.bytes, before);
      return await nextReply(proxy, link, await link.inject(request.bytes));
    },
  };
}

interface Caught {
  readonly request: ProxiedRequest;
  readonly link: ProxyLink;
}

function catchRequest(
  proxy: FaultProxy,
  choice: Choice,
  verdict: "hold" | "pass",
): Promise<Caught> {
  const chosen = chooser(choice);
  return new Promise((resolve) => {
    const remove = proxy.onRequest((request, link) => {
      if (!chosen(request)) return undefined;
      remove();
      if (verdict === "pass") link.keepUpstream();
      resolve({ request, link });
      return verdict;
    });
  });
}

function nextReply(
  proxy: FaultProxy,
  link: ProxyLink,
  request: ProxiedRequest,
): Promise<Reply | undefined> {
  return new Promise((resolve, reject) => {
    const remove = proxy.onReply((reply, from) => {
      // Without framing a reply does not show its request: the next reply counts.
      if (from !== link || reply.pushed || (reply.to ?? request) !== request) return undefined;
      remove();
      resolve(reply.value);
      return undefined;
    });
    link.whenClosed.then(() => {
      remove();
      reject(new Error("the server closed the connection without a reply"));
    }, reject);
  });
}

async function sendOnNewConnection(
  port: number,
  bytes: Buffer,
  before: readonly (readonly string[])[],
): Promise<Reply> {
  await using client = await RespClient.connect(port);
  for (const command of before) await client.send(...command);
  try {
    return await client.sendEncoded(bytes);
  } catch (error) {
    if (error instanceof RespError) return error;
    throw error;
  }
}
