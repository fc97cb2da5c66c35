import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import { type Running, Workshop } from "./command-line.js";

const PAGE = { "x-holdfast-dashboard": "1" };

/** The address and the token that the command prints. */
async function printed(running: Running): Promise<{ address: string; token: string }> {
  await waitUntil(() => running.stdout.includes("\n"), { what: "the URL is printed" });
  const [, address = "", token = ""] = /^(\S+)#token=([\w-]{43})\n$/.exec(running.stdout) ?? [];
  return { address, token };
}

function bearer(token: string): Record<string, string> {
  return { ...PAGE, authorization: `Bearer ${token}`, "content-type": "application/json" };
}

describe("dashboard", () => {
  it("serves at 127.0.0.1 to those that know the token, until it is interrupted", async () => {
    await using shop = new Workshop();
    const running = shop.start(["dashboard"]);
    const { address, token } = await printed(running);
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    expect((await fetch(address)).headers.get("content-type")).toContain("text/html");
    expect((await fetch(`${address}api/live`, { headers: PAGE })).status).toBe(401);
    const live = await fetch(`${address}api/live`, { headers: bearer(token) });
    expect(live.status).toBe(200);
    running.kill("SIGINT");
    expect((await running.result).code).toBe(0);
    await live.text().catch(() => {});
  });

  it("only reads, unless --allow-revoke is given", async () => {
    await using shop = new Workshop();
    await shop.hold("deploy");
    const running = shop.start(["dashboard"]);
    const { address, token } = await printed(running);
    const [view] = JSON.parse(`[${(await shop.run(["show", "--json", "deploy"])).stdout}]`);
    const body = JSON.stringify({
      space: "lock",
      name: "deploy",
      token: view.holders[0].token,
      reason: "because",
    });
    const options = { method: "POST", headers: bearer(token), body };
    expect((await fetch(`${address}api/revoke`, options)).status).toBe(403);
  });

  it("writes revocations to the audit, and the token nowhere but to stdout", async () => {
    await using shop = new Workshop();
    const holder = await shop.hold("--ttl", "2s", "deploy");
    const audit = shop.path("audit.jsonl");
    const running = shop.start(["dashboard", "--allow-revoke", "--audit", audit]);
    const { address, token } = await printed(running);
    const [view] = JSON.parse(`[${(await shop.run(["show", "--json", "deploy"])).stdout}]`);
    const order = { space: "lock", name: "deploy", token: view.holders[0].token, reason: "stuck" };
    const body = JSON.stringify(order);
    const ask = (path: string, key: string, options: RequestInit = {}): Promise<Response> =>
      fetch(address + path, { headers: bearer(key), ...options });
    for (const path of ["api/revoke", "nothing", `api/live?token=${token}`]) {
      await (await ask(path, `${token}x`, { method: "POST", body })).text();
    }
    const answer = await ask("api/revoke", token, { method: "POST", body });
    expect(await answer.json()).toEqual({ outcome: "revoked", isAudited: true });
    const lines = (await shop.lines("audit.jsonl", 2)).map((line) => JSON.parse(line));
    expect(lines).toMatchObject([
      { ...order, action: "revoke", outcome: "asked" },
      { ...order, action: "revoke", outcome: "revoked" },
    ]);
    expect(lines[0].actor).toMatch(/^\S+ on \S+$/);
    const { stderr } = await holder.result;
    expect(stderr).toContain(`stuck (by ${lines[0].actor})`);

    const seen = [
      readFileSync(`/proc/${running.pid}/cmdline`, "latin1"),
      readFileSync(`/proc/${running.pid}/environ`, "latin1"),
      shop.read("audit.jsonl"),
      running.stderr,
      JSON.stringify((await shop.run(["list", "--json"])).stdout),
    ];
    expect(seen.filter((text) => text.includes(token))).toEqual([]);
    expect(running.stdout.split(token)).toHaveLength(2);
  });

  it("writes the audit to stderr by default", async () => {
    await using shop = new Workshop();
    const running = shop.start(["dashboard", "--allow-revoke"]);
    const { address, token } = await printed(running);
    const body = JSON.stringify({ space: "lock", name: "x\u001b[2J", token: "1", reason: "why" });
    const options = { method: "POST", headers: bearer(token), body };
    expect((await fetch(`${address}api/revoke`, options)).status).toBe(200);
    await running.shows('"outcome":"not_held"');
    expect(running.stderr).toContain('"name":"x\\u001b[2J"');
  });

  it("shows no password of the store, also while the store is away", async () => {
    await using shop = new Workshop();
    const store = "etcd://mira:hunter2@127.0.0.1:1/?namespace=x";
    const running = shop.start(["dashboard", "--store", store]);
    const { address, token } = await printed(running);
    const live = await fetch(`${address}api/live?view=locks`, { headers: bearer(token) });
    let text = "";
    for await (const part of live.body ?? []) {
      text += Buffer.from(part).toString();
      if (text.includes('"is":"away"')) break;
    }
    expect(text).toContain('"title":"etcd://127.0.0.1:1/"');
    expect(text + running.stderr).not.toMatch(/hunter2|mira/);
  });

  it("refuses a URL that no store has", async () => {
    await using shop = new Workshop();
    const { code, stdout } = await shop.run(["dashboard", "--store", "mysql://localhost"]);
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect((await shop.run(["dashboard", "--store", "redis://a?replicas=many"])).code).toBe(64);
  });

  it("says that a port is taken, and what else is wrong", async () => {
    await using shop = new Workshop();
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    const taken = await shop.run(["dashboard", "--port", `${port}`]);
    server.close();
    expect(taken.code).toBe(64);
    expect(taken.stderr).toContain(`Port ${port} is taken`);
    expect((await shop.run(["dashboard", "--audit", "x"])).code).toBe(64);
    expect((await shop.run(["dashboard", "--port", "0"])).code).toBe(64);
  });
});
