/** The dashboard in servers of other packages, mounted as docs/operate.md says. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { MountedDashboard } from "./fixtures/mounted-dashboard.js";

// Their types need those of a browser, or further packages.
const require = createRequire(import.meta.url);
const express = require("express");
const { fastify } = require("fastify");
const { Hono } = require("hono");
const { serve } = require("@hono/node-server");

async function portOf(server: Server): Promise<number> {
  if (!server.listening) await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

interface FastifyRequest {
  readonly raw: IncomingMessage;
  readonly body: unknown;
}

interface FastifyReply {
  readonly raw: ServerResponse;
  hijack(): void;
}

interface HonoContext {
  readonly req: { readonly raw: Request };
}

describe.concurrent("the dashboard is served by", () => {
  it("node:http", async () => {
    await using mounted = new MountedDashboard();
    const server = createServer(mounted.board.handleNode).listen(0, "127.0.0.1");
    await mounted.expectServed(await portOf(server));
    await close(server);
  });

  it.each([
    ["before a parser of bodies", false],
    ["behind parsers of bodies", true],
  ])("Express, %s", async (_, isParsed) => {
    await using mounted = new MountedDashboard();
    const app = express();
    if (isParsed) app.use(express.json(), express.urlencoded());
    app.use("/locks", mounted.board.handleNode);
    const server = app.listen(0, "127.0.0.1");
    await mounted.expectServed(await portOf(server));
    await close(server);
  });

  it("Express in a router", async () => {
    await using mounted = new MountedDashboard();
    const router = express.Router();
    router.use(mounted.board.handleNode);
    const server = express().use("/locks", router).listen(0, "127.0.0.1");
    await mounted.expectServed(await portOf(server));
    await close(server);
  });

  it("Fastify", async () => {
    await using mounted = new MountedDashboard();
    const { board } = mounted;
    const app = fastify();
    app.all("/locks/*", (request: FastifyRequest, reply: FastifyReply) => {
      reply.hijack();
      board.handleNode(Object.assign(request.raw, { body: request.body }), reply.raw);
    });
    await app.listen({ port: 0, host: "127.0.0.1" });
    await mounted.expectServed(await portOf(app.server));
    app.server.closeAllConnections();
    await app.close();
  });

  it("Hono", async () => {
    await using mounted = new MountedDashboard();
    const { board } = mounted;
    const app = new Hono();
    app.all("/locks/*", (context: HonoContext) => board.handle(context.req.raw));
    const server = serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" });
    await mounted.expectServed(await portOf(server));
    await close(server);
  });

  /** A route handler is a function for each method, from Fetch to Fetch. */
  it("a route handler of Next, by its contract", async () => {
    await using mounted = new MountedDashboard();
    const route = { GET: mounted.board.handle, POST: mounted.board.handle };
    const address = "http://127.0.0.1/locks/";
    const page = await route.GET(new Request(address));
    expect(page.headers.get("x-frame-options")).toBe("DENY");
    const asked = new Request(`${address}api/revoke`, { method: "POST", body: "{}" });
    expect((await route.POST(asked)).status).toBe(403);
  });
});
