/** The command line on stores across the network. */
import { expect, it } from "vitest";
import { Workshop } from "../cli/command-line.js";
import { startEtcd } from "../servers/etcd.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";

const starts = {
  redis: async () => {
    const server = await startRedis();
    return { server, url: server.url };
  },
  postgres: async () => {
    const server = await startPostgres();
    return { server, url: server.url };
  },
  etcd: async () => {
    const server = await startEtcd();
    return { server, url: server.url.replace("http:", "etcd:") };
  },
};

it.concurrent.each(Object.entries(starts))(
  "runs, shows, lists and refuses on %s",
  async (_, start) => {
    const { server, url } = await start();
    await using _server = server;
    await using shop = new Workshop();
    const env = { HOLDFAST_STORE: url };
    const ask = (...args: string[]) => shop.run(args, { env });
    const inside = shop.start(["run", "x", "--", "sh", "-c", "echo held; exec sleep 60"], { env });
    await inside.shows("held");
    expect(await ask("list")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^x /m) });
    expect((await ask("show", "x")).stdout).toContain("held by sh");
    expect(await ask("run", "-n", "x", "--", "true")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("x: not acquired: held by sh"),
    });
    inside.kill("SIGTERM");
    expect((await inside.result).code).toBe(143);
    expect(await ask("list")).toMatchObject({ code: 0, stdout: "" });
  },
);
