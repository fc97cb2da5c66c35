import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it, vi } from "vitest";
import { answerNode } from "./node-answer.js";

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Handle = (request: Request) => Promise<Response>;

async function serve(
  handle: Handle,
  prepare: (message: IncomingMessage) => void = () => {},
): Promise<string> {
  const server = createServer((message, response) => {
    prepare(message);
    void answerNode(handle, message, response);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it("passes on the method, the path, the headers and the body", async () => {
  const base = await serve(async (asked) => {
    const { pathname, search } = new URL(asked.url);
    const body = await asked.text();
    return Response.json([asked.method, pathname + search, asked.headers.get("x-a"), body]);
  });
  const options = { method: "POST", headers: { "x-a": "1" }, body: "hello" };
  const answer = await fetch(`${base}/b?c=d`, options);
  expect(await answer.json()).toEqual(["POST", "/b?c=d", "1", "hello"]);
});

it("knows the whole path and the parsed body that a framework leaves", async () => {
  const handle: Handle = async (asked) =>
    Response.json([new URL(asked.url).pathname, await asked.json()]);
  const base = await serve(handle, (message) => {
    Object.assign(message, { originalUrl: `/locks${message.url}`, body: { a: 1 } });
  });
  const answer = await fetch(`${base}/api`, { method: "POST", body: "gone" });
  expect(await answer.json()).toEqual(["/locks/api", { a: 1 }]);
});

it("judges the host by its header, whatever the request line says", async () => {
  const base = await serve(async (asked) => new Response(asked.headers.get("host")));
  const { port } = new URL(base);
  const ask = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { port, host: "127.0.0.1", path, headers: { host: "evil.example" } };
      const asked = request(options, (answer) => {
        let text = `${answer.statusCode} `;
        answer.on("data", (part) => {
          text += part;
        });
        answer.on("end", () => resolve(text));
      });
      asked.on("error", reject).end();
    });
  expect(await ask("/")).toBe("200 evil.example");
  expect(await ask("http://ops.example/")).toBe("400 ");
  expect(await ask("//ops.example/")).toBe("200 evil.example");
});

it("refuses a method that Fetch does not know", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const base = await serve(async () => new Response("done"));
  const status = await new Promise((resolve, reject) => {
    const asked = request(base, { method: "TRACE" }, (answer) => resolve(answer.statusCode));
    asked.on("error", reject).end();
  });
  expect([status, warn.mock.calls]).toEqual([400, []]);
  warn.mockRestore();
});

it("ends a stream when its reader leaves", async () => {
  let onCancel = (): void => {};
  const cancelled = new Promise<void>((resolve) => {
    onCancel = resolve;
  });
  const base = await serve(async () => {
    const encoder = new TextEncoder();
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(encoder.encode("x".repeat(50_000))),
      cancel: () => onCancel(),
    });
    return new Response(body);
  });
  const leave = new AbortController();
  const answer = await fetch(base, { signal: leave.signal });
  await answer.body?.getReader().read();
  leave.abort();
  await cancelled;
});

it("answers an error of the handler with 500, and warns the host", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
  const base = await serve(async () => {
    throw new Error("no session store");
  });
  const answer = await fetch(base);
  expect(answer.status).toBe(500);
  expect(await answer.text()).toBe("");
  expect(warn).toHaveBeenCalledWith(expect.objectContaining({ message: "no session store" }));
  warn.mockRestore();
});
