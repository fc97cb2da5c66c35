import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { fencedFetch, fenceHeaders, httpFence } from "./http.js";

function ask(token: bigint, name = "a lock"): Request {
  return new Request("http://service/", { headers: fenceHeaders({ name, token }) });
}

describe("a fence before a handler", () => {
  it("passes the same and higher tokens, and refuses lower ones with the highest", async () => {
    const guarded = httpFence().wrap(async () => new Response("done"));
    for (const token of [7n, 7n, 8n]) expect((await guarded(ask(token))).status).toBe(200);
    const refused = await guarded(ask(7n));
    expect([refused.status, refused.headers.get("fencing-token")]).toEqual([412, "8"]);
    expect(await refused.text()).toMatch(/"a lock" with token 7 is refused/);
    expect((await guarded(ask(1n, "other"))).status).toBe(200);
  });

  it("lets the write of an earlier holder end before a later holder passes", async () => {
    const order: string[] = [];
    let end: () => void = () => {};
    const slow = new Promise<void>((resume) => {
      end = resume;
    });
    const guarded = httpFence().wrap(async (request) => {
      const token = request.headers.get("fencing-token");
      if (token === "7") await slow;
      order.push(`${token} writes`);
      return new Response();
    });
    const early = guarded(ask(7n));
    const later = guarded(ask(8n));
    const late = guarded(ask(7n));
    end();
    const statuses = (await Promise.all([early, later, late])).map(({ status }) => status);
    expect(order).toEqual(["7 writes", "8 writes"]);
    expect(statuses).toEqual([200, 200, 412]);
  });

  it("goes on after a handler that failed", async () => {
    const guarded = httpFence().wrap(() => Promise.reject(new Error("out of stock")));
    await expect(guarded(ask(7n))).rejects.toThrow("out of stock");
    await expect(guarded(ask(7n))).rejects.toThrow("out of stock");
  });

  it.each([
    { what: "no headers", headers: {}, status: 428 },
    { what: "no lock", headers: { "fencing-token": "7" }, status: 400 },
    { what: "no number", headers: { "fencing-lock": "a", "fencing-token": "-7" }, status: 400 },
    { what: "no text", headers: { "fencing-lock": "%E0%A4%A", "fencing-token": "7" }, status: 400 },
  ])("refuses a request with $what", async ({ headers, status }) => {
    const guarded = httpFence().wrap(async () => new Response());
    expect((await guarded(new Request("http://service/", { headers }))).status).toBe(status);
  });

  it("lets requests without a token pass where they may", async () => {
    const guarded = httpFence({ isOptional: true }).wrap(async () => new Response("done"));
    expect((await guarded(new Request("http://service/"))).status).toBe(200);
  });
});

describe("a fence before a handler of node:http", () => {
  it("lets a handler end although its client has gone away", async () => {
    const order: string[] = [];
    let end: () => void = () => {};
    const slow = new Promise<void>((resume) => {
      end = resume;
    });
    const gone = new AbortController();
    const guarded = httpFence().wrapNode(async (request, response) => {
      const token = request.headers["fencing-token"];
      if (token === "7") {
        const closed = once(response, "close");
        gone.abort();
        await closed;
        await slow;
      }
      order.push(`${token} writes`);
      response.writeHead(204).end();
    });
    const server = createServer((request, response) => {
      if (request.headers["fencing-token"] === "8") setImmediate(end);
      void guarded(request, response);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    try {
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const lease = { name: "a lock", token: 7n, signal: gone.signal };
      await expect(fencedFetch(lease, url)).rejects.toThrow("aborted");
      await fencedFetch({ name: "a lock", token: 8n }, url);
      expect(order).toEqual(["7 writes", "8 writes"]);
      const late = fencedFetch({ name: "a lock", token: 7n }, url);
      await expect(late).rejects.toMatchObject({ code: "HF_STALE_TOKEN", highest: 8n });
    } finally {
      server.close();
    }
  });
});
