import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { fencedFetch, fenceHeaders, type HttpFenceOptions, httpFence } from "./http.js";

function ask(token: bigint, name = "a lock"): Request {
  const path = encodeURIComponent(name);
  return new Request(`http://service/${path}`, { headers: fenceHeaders({ name, token }) });
}

/** The lock of each resource is its path. */
const lockOf = ({ url = "" }: { url?: string | undefined }): string =>
  decodeURIComponent(new URL(url, "http://service").pathname.slice(1));

describe("a fence before a handler", () => {
  it("passes the same and higher tokens, and refuses lower ones with the highest", async () => {
    const guarded = httpFence({ lockOf }).wrap(async () => new Response("done"));
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
    const guarded = httpFence({ lockOf }).wrap(async (request) => {
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
    const guarded = httpFence({ lockOf }).wrap(() => Promise.reject(new Error("out of stock")));
    await expect(guarded(ask(7n))).rejects.toThrow("out of stock");
    await expect(guarded(ask(7n))).rejects.toThrow("out of stock");
  });

  it.each([
    { what: "no headers", headers: {}, status: 428 },
    { what: "no lock", headers: { "fencing-token": "7" }, status: 400 },
    { what: "no number", headers: { "fencing-lock": "a", "fencing-token": "-7" }, status: 400 },
    { what: "no text", headers: { "fencing-lock": "%E0%A4%A", "fencing-token": "7" }, status: 400 },
  ])("refuses a request with $what", async ({ headers, status }) => {
    const guarded = httpFence({ lockOf }).wrap(async () => new Response());
    expect((await guarded(new Request("http://service/a", { headers }))).status).toBe(status);
  });

  it("lets requests without a token pass where they may", async () => {
    const guarded = httpFence({ lockOf, isOptional: true }).wrap(async () => new Response("done"));
    expect((await guarded(new Request("http://service/"))).status).toBe(200);
  });
});

describe("a client that is not trusted", () => {
  const nowUs = (): bigint => BigInt(Date.now()) * 1_000n;

  it("cannot lock the rightful holder out with a token that no store has granted", async () => {
    const guarded = httpFence({ lockOf }).wrap(async () => new Response("done"));
    const held = nowUs();
    const ahead = held + 2n * 3_600_000_000n;
    for (const token of [9_999_999_999_999_999_999n, 2n ** 63n - 1n, ahead]) {
      expect((await guarded(ask(token))).status).toBe(400);
    }
    expect((await guarded(ask(held))).status).toBe(200);
    expect((await guarded(ask(held - 1n))).status).toBe(412);
  });

  it("passes with a token that the store has granted, if the service asks it", async () => {
    const granted = new Map([["a lock", 17n]]);
    const maxToken = async (lock: string): Promise<bigint> => granted.get(lock) ?? 0n;
    const guarded = httpFence({ lockOf, maxToken }).wrap(async () => new Response("done"));
    expect((await guarded(ask(18n))).status).toBe(400);
    expect((await guarded(ask(17n))).status).toBe(200);
    granted.set("a lock", 18n);
    expect((await guarded(ask(18n))).status).toBe(200);
  });

  it("cannot pass under another lock than that of the resource", async () => {
    let writes = 0;
    const guarded = httpFence({ lockOf }).wrap(async () => {
      writes += 1;
      return new Response("done");
    });
    expect((await guarded(ask(8n))).status).toBe(200);
    const headers = fenceHeaders({ name: "mine", token: 9n });
    const foreign = await guarded(new Request("http://service/a%20lock", { headers }));
    expect([foreign.status, writes]).toEqual([400, 1]);
    expect((await guarded(ask(8n))).status).toBe(200);
  });

  it("fills no more memory than 10,000 locks take, and opens no fence that is there", async () => {
    const guarded = httpFence({ lockOf }).wrap(async () => new Response("done"));
    for (let at = 0; at < 10_000; at += 1) await guarded(ask(7n, `name ${at}`));
    const refused = await guarded(ask(7n, "one more"));
    expect([refused.status, await refused.text()]).toEqual([
      503,
      "This process has the tokens of 10000 locks, and takes no more.\n",
    ]);
    expect((await guarded(ask(8n, "name 0"))).status).toBe(200);
    expect((await guarded(ask(7n, "name 0"))).status).toBe(412);
  });

  it("takes no memory by long names, which no lock can have", async () => {
    const keep = vi.fn();
    const memory = { highest: () => 0n, keep };
    const fence = httpFence({ lockOf: ({ url = "" }) => new URL(url).pathname, memory });
    const guarded = fence.wrap(async () => new Response());
    for (const [length, status] of [
      [511, 200],
      [512, 400],
      [8_000, 400],
    ] as const) {
      const path = `/${"x".repeat(length)}`;
      const headers = fenceHeaders({ name: path, token: 1n });
      const response = await guarded(new Request(`http://a${path}`, { headers }));
      expect(response.status).toBe(status);
    }
    expect(keep).toHaveBeenCalledOnce();
  });

  it("needs no token where no lock guards the request", async () => {
    const open = ({ method }: { method?: string | undefined }): string | null =>
      method === "GET" ? null : "a lock";
    const guarded = httpFence({ lockOf: open }).wrap(async () => new Response("done"));
    expect((await guarded(new Request("http://service/"))).status).toBe(200);
    expect((await guarded(new Request("http://service/", { method: "PUT" }))).status).toBe(428);
  });

  it("is not let in by a fence that names no lock", () => {
    expect(() => httpFence({} as HttpFenceOptions)).toThrow(/lockOf/);
    expect(() => httpFence(undefined as unknown as HttpFenceOptions)).toThrow(/lockOf/);
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
    const guarded = httpFence({ lockOf }).wrapNode(async (request, response) => {
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
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a%20lock`;
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
