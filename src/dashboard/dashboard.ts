import type { IncomingMessage, ServerResponse } from "node:http";
import { Desk } from "./desk.js";
import { answerNode } from "./node-answer.js";
import type { ShownLocks } from "./options.js";
import { checkedOptions, type DashboardOptions } from "./options.js";

/** A dashboard, ready to be mounted. */
export interface Dashboard {
  /** For servers that speak Fetch, such as Hono and Next. */
  readonly handle: (request: Request) => Promise<Response>;
  /** For servers that speak Node: `node:http`, Express, Nest, the raw requests of Fastify. */
  readonly handleNode: (request: IncomingMessage, response: ServerResponse) => void;
  /** Ends all streams and looks. The locks stay open. */
  readonly close: () => void;
}

/**
 * A web page that shows the locks of a store, live, to be mounted in a server of your own. It reads
 * the store only while there is a viewer. Throws `InvalidOptionError` without `authorize`.
 *
 * @example
 * import { createServer } from "node:http";
 * import { dashboard } from "holdfast/dashboard";
 *
 * const board = dashboard(locks, {
 *   authorize: (request) => (request.headers.get("x-user") === "ops" ? "ops" : null),
 *   hosts: ["ops.example.com"],
 * });
 * createServer(board.handleNode).listen(8080);
 */
export function dashboard(locks: ShownLocks, options: DashboardOptions): Dashboard {
  const desk = new Desk(locks, checkedOptions(options));
  const handle = (request: Request): Promise<Response> => desk.handle(request);
  return {
    handle,
    handleNode: (request, response) => void answerNode(handle, request, response),
    close: () => desk.close(),
  };
}
