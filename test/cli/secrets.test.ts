import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import { Workshop } from "./command-line.js";

const SECRET = "pass-word";

/** Accepts connections and sends nothing, so that the command line keeps waiting. */
const silent = createServer();
let host = "";

beforeAll(async () => {
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  host = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
});

afterAll(() => void silent.close());

function argumentsOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8");
}

describe("a password in the URL of a store", () => {
  it.each([
    ["redis", () => `redis://user:${SECRET}@${host}/0`],
    ["redis with TLS", () => `rediss://:${SECRET}@${host}`],
    ["sentinel", () => `redis+sentinel://user:${SECRET}@${host}/master`],
    ["redlock", () => `redlock://user:${SECRET}@${host},localhost:${host.split(":")[1]}`],
    ["etcd", () => `etcd://user:${SECRET}@${host},${host}`],
  ])("%s: is neither shown nor seen in the list of processes", async (_store, url) => {
    await using shop = new Workshop();
    const running = shop.start(["run", "-v", `--store=${url()}`, "x", "--", "true"]);
    await waitUntil(() => argumentsOf(running.pid).includes(":***@"), {
      what: "the arguments are overwritten",
    });
    expect(argumentsOf(running.pid)).not.toContain(SECRET);
    running.kill("SIGTERM");
    const { stdout, stderr } = await running.result;
    expect(stdout + stderr).not.toContain(SECRET);
  });

  it.each([
    `gopher://user:${SECRET}@127.0.0.1/`,
    `redis://user:${SECRET}%zz@127.0.0.1/`,
    `redis://user:${SECRET}@127.0.0.1:1,127.0.0.1:2,nonsense:x`,
    `redlock://user:${SECRET}@:::,b`,
    `redis//user:${SECRET}@host`,
    `redis://127.0.0.1:1/0?password=${SECRET}`,
  ])("%s: is not shown where the URL is refused", async (url) => {
    await using shop = new Workshop();
    for (const json of [[], ["--json"]]) {
      const args = ["run", "-v", ...json, "x", "--", "true"];
      const { code, stdout, stderr } = await shop.run(args, { env: { HOLDFAST_STORE: url } });
      expect(code).toBeGreaterThanOrEqual(64);
      expect(stdout + stderr).not.toContain(SECRET);
    }
  });

  it("is hidden when the URL is in the wrong place", async () => {
    await using shop = new Workshop();
    const { code, stderr } = await shop.run([`redis://user:${SECRET}@127.0.0.1`]);
    expect(code).toBe(64);
    expect(stderr).toContain("redis://user:***@127.0.0.1");
  });
});
