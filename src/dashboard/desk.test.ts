import { afterEach, describe, expect, it } from "vitest";
import { Holdfast } from "../api/holdfast.js";
import { memoryStore } from "../stores/memory/index.js";
import { type Dashboard, dashboard } from "./dashboard.js";
import type { LiveMessage } from "./message.js";
import type { DashboardOptions } from "./options.js";
import type { AuditLine } from "./revocation.js";

const locks: Holdfast[] = [];
const boards: Dashboard[] = [];

afterEach(async () => {
  for (const board of boards.splice(0)) board.close();
  await Promise.all(locks.splice(0).map((one) => one.close()));
});

const authorize = (request: Request): string | null => request.headers.get("x-user");

function open(options: Partial<DashboardOptions> = {}): { board: Dashboard; held: Holdfast } {
  const held = new Holdfast(memoryStore());
  const board = dashboard(held, { authorize, hosts: ["ops.example"], ...options });
  locks.push(held);
  boards.push(board);
  return { board, held };
}

/** The headers of a page of the dashboard itself, in a browser. */
const OURS = {
  host: "ops.example",
  "x-user": "mira",
  "x-holdfast-dashboard": "1",
  "sec-fetch-site": "same-origin",
} as const;

function request(
  path: string,
  headers: Record<string, string> = OURS,
  body?: object | string,
): Request {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return new Request(`http://ops.example${path}`, {
    headers: { "content-type": "application/json", ...headers },
    ...(body !== undefined && { method: "POST", body: text }),
  });
}

/** The first messages of a live stream. */
async function messages(response: Response, count: number): Promise<LiveMessage[]> {
  const found: LiveMessage[] = [];
  let text = "";
  for await (const part of response.body ?? []) {
    text += new TextDecoder().decode(part);
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      found.push(JSON.parse(text.slice("data: ".length, end)));
      text = text.slice(end + 2);
    }
    if (found.length >= count) break;
  }
  return found;
}

describe("options", () => {
  it("must have authorize", () => {
    const held = new Holdfast(memoryStore());
    locks.push(held);
    expect(() => dashboard(held, {} as DashboardOptions)).toThrow(/authorize/);
    expect(() => dashboard(held, undefined as unknown as DashboardOptions)).toThrow(/authorize/);
  });

  it.each<[string, Partial<DashboardOptions>]>([
    ["onAudit", { allowRevoke: true }],
    ["hosts", { hosts: [""] }],
    ["path", { path: "locks" }],
    ["everyMs", { everyMs: 10 }],
    ["everyMs", { everyMs: Number.NaN }],
    ["did you mean title", { titel: "x" } as Partial<DashboardOptions>],
  ])("are checked: %s", (name, options) => {
    expect(() => open(options)).toThrow(name);
  });
});

describe("files", () => {
  it("are served below the path, without authorization, and nothing else is", async () => {
    const { board } = open({ path: "/locks" });
    const page = await board.handle(request("/locks/", { host: "ops.example" }));
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(await page.text()).toContain('<script type="module" src="main.js">');
    expect((await board.handle(request("/locks"))).headers.get("location")).toBe("/locks/");
    const script = await board.handle(request("/locks/main.js"));
    expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    for (const path of ["/", "/locks/nothing.js", "/lockss/", "/locks/../main.js", "/locks/a/b"]) {
      expect((await board.handle(request(path))).status).toBe(404);
    }
    expect((await board.handle(request("/locks/main.js", OURS, {}))).status).toBe(405);
  });

  it("and all other answers carry the headers that forbid frames and inline code", async () => {
    const { board } = open();
    const answers = [
      await board.handle(request("/")),
      await board.handle(request("/api/live")),
      await board.handle(request("/api/live", { host: "evil.example" })),
      await board.handle(request("/nothing")),
    ];
    for (const { headers } of answers) {
      const policy = headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|https?:|data:|\*/);
      expect(headers.get("x-frame-options")).toBe("DENY");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toContain("no-store");
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
  });
});

describe("an attack", () => {
  const order = { space: "lock", name: "a", token: "1", reason: "because" };

  it.each<[string, number, Record<string, string>]>([
    ["by a name that leads here (DNS rebinding)", 403, { ...OURS, host: "evil.example" }],
    [
      "by a host with a port that is none",
      403,
      { ...OURS, host: "ops.example:99999", origin: "http://ops.example" },
    ],
    ["by a host that only begins like ours", 403, { ...OURS, host: "ops.example.evil.example" }],
    ["by a page of another site", 403, { ...OURS, "sec-fetch-site": "cross-site" }],
    ["by a page of another port", 403, { ...OURS, "sec-fetch-site": "same-site" }],
    ["by a typed address or a link", 403, { ...OURS, "sec-fetch-site": "none" }],
    ["by another origin", 403, { ...OURS, origin: "https://evil.example" }],
    ["by another port of the same host", 403, { ...OURS, origin: "http://ops.example:3000" }],
    ["by a frame without an origin", 403, { ...OURS, origin: "null" }],
    ["without the header of the page", 403, { host: "ops.example", "x-user": "mira" }],
    ["without authorization", 401, { ...OURS, "x-user": "" }],
  ])("%s is refused, whatever is asked for", async (_what, status, headers) => {
    const audit: AuditLine[] = [];
    const onAudit = (line: AuditLine): void => void audit.push(line);
    const { board, held } = open({ allowRevoke: true, onAudit });
    const lease = await held.mutex("a").acquire();
    const orders = { ...order, token: `${lease.token}` };
    expect((await board.handle(request("/api/live", headers))).status).toBe(status);
    expect((await board.handle(request("/api/findings", headers))).status).toBe(status);
    const refused = await board.handle(request("/api/revoke", headers, orders));
    expect(refused.status).toBe(status);
    expect(await refused.text()).not.toContain("evil");
    expect(audit).toEqual([]);
    expect(lease.state).toBe("held");
    // The same request of the page itself passes.
    const origin = "http://ops.example";
    expect((await board.handle(request("/api/revoke", { ...OURS, origin }, orders))).status).toBe(
      200,
    );
  });

  it("by a preflight gets no permission", async () => {
    const { board } = open();
    const headers = {
      host: "ops.example",
      origin: "https://evil.example",
      "access-control-request-method": "POST",
    };
    const preflight = new Request("http://ops.example/api/revoke", { method: "OPTIONS", headers });
    const answer = await board.handle(preflight);
    expect(answer.status).toBe(403);
    expect([...answer.headers.keys()].filter((name) => /^access-control/.test(name))).toEqual([]);
  });

  it("by an authorize that names no person gets nothing", async () => {
    for (const actor of [true, {}, undefined, "", null]) {
      const { board } = open({ authorize: () => actor as string });
      expect((await board.handle(request("/api/live"))).status).toBe(401);
    }
  });

  it("on a dashboard that only reads revokes nothing", async () => {
    const { board, held } = open();
    const lease = await held.mutex("a").acquire();
    const orders = { ...order, token: `${lease.token}` };
    expect((await board.handle(request("/api/revoke", OURS, orders))).status).toBe(403);
    expect((await held.inspect("a")).holders).toHaveLength(1);
  });

  it.each<[string, number, object | string]>([
    ["no JSON", 400, "{"],
    ["no object", 400, "7"],
    ["an unknown space", 400, { ...order, space: "__proto__" }],
    ["no name", 400, { ...order, name: "" }],
    ["a token that is no number", 400, { ...order, token: "0x1" }],
    ["no reason", 400, { ...order, reason: " " }],
    [
      "a reason that is too long with the name of the actor",
      400,
      { ...order, reason: "x".repeat(1_020) },
    ],
    ["far too much", 400, { ...order, reason: "x".repeat(10_000) }],
  ])("with a body that has %s is refused", async (_what, status, body) => {
    const audit: AuditLine[] = [];
    const onAudit = (line: AuditLine): void => void audit.push(line);
    const { board } = open({ allowRevoke: true, onAudit });
    expect((await board.handle(request("/api/revoke", OURS, body))).status).toBe(status);
    expect(audit).toEqual([]);
  });

  it("with a form is refused", async () => {
    const { board } = open({ allowRevoke: true, onAudit: () => {} });
    const headers = { ...OURS, "content-type": "text/plain" };
    expect((await board.handle(request("/api/revoke", headers, order))).status).toBe(415);
  });
});

describe("the live stream", () => {
  it("shows the locks, and one lock with its holder and its queue", async () => {
    const { board, held } = open();
    await held.mutex("a").acquire({ meta: { host: "web1", pid: 7, label: "job", ticket: [1] } });
    const stop = new AbortController();
    const waiting = held.mutex("a").acquire({ waitMs: 60_000, signal: stop.signal });
    waiting.catch(() => {});
    const [first, second] = await messages(await board.handle(request("/api/live?view=locks")), 2);
    expect(first?.store.is).toBe("asked");
    expect(second).toMatchObject({
      actor: "mira",
      mayRevoke: false,
      store: { is: "here" },
      totals: { locks: 1, held: 1, waiters: 1 },
      page: { total: 1, rows: [{ name: "a", holder: "job on web1 (pid 7)", waiters: 1 }] },
    });
    const query = "view=lock&space=lock&name=a";
    const found = await messages(await board.handle(request(`/api/live?${query}`)), 2);
    expect(found.at(-1)?.lock).toMatchObject({
      holders: [{ host: "web1", pid: "7", label: "job", more: [["ticket", "[1]"]] }],
      waiterCount: 1,
    });
    stop.abort();
  });

  it("shows the leases of this process", async () => {
    const { board, held } = open();
    const { token } = await held.mutex("a").acquire();
    const [first] = await messages(await board.handle(request("/api/live?view=leases")), 1);
    expect(first?.leases).toMatchObject([{ name: "a", token: `${token}`, state: "held" }]);
  });

  it("counts the losses of this process by reason, without a viewer", async () => {
    const { board, held } = open();
    const { token } = await held.mutex("a").acquire({ ttlMs: 300 });
    await held.revoke("a", { token, reason: "test" });
    const lost = async (): Promise<object | undefined> => {
      const [first] = await messages(await board.handle(request("/api/live?view=leases")), 1);
      return first?.points.at(-1)?.lost;
    };
    await expect.poll(lost).toEqual({ revoked: 1 });
  });

  it("is ended by close, and there are at most a hundred", async () => {
    const { board } = open();
    const all = await Promise.all(
      Array.from({ length: 101 }, () => board.handle(request("/api/live"))),
    );
    expect(all.map(({ status }) => status).filter((status) => status !== 200)).toEqual([503]);
    board.close();
    await Promise.all(all.slice(0, 100).map((response) => response.text()));
    expect((await board.handle(request("/api/live"))).status).toBe(503);
  });

  it("keeps no messages for a viewer that does not read", async () => {
    const { board, held } = open({ everyMs: 250 });
    const slow = await board.handle(request("/api/live?view=locks"));
    await messages(await board.handle(request("/api/live?view=locks")), 4);
    await held.mutex("late").acquire();
    await messages(await board.handle(request("/api/live?view=locks")), 3);
    // The message that was ready before the first look, and then the newest.
    const [first, second] = await messages(slow, 2);
    expect(first?.store.is).toBe("asked");
    expect(second?.page?.rows).toMatchObject([{ name: "late" }]);
  });
});
