/** A session does not keep its process alive, in any state of the server. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ControlledProcess } from "../faults/process.js";
import { compile } from "../servers/compiled.js";
import { startZookeeper, type ZookeeperServer, zookeeperMissing } from "../servers/zookeeper.js";

const missing = zookeeperMissing();

describe.skipIf(missing)(`the exit of a process${missing ? ` (${missing})` : ""}`, () => {
  let server: ZookeeperServer;
  let module: URL;

  beforeAll(async () => {
    server = await startZookeeper();
    const source = new URL("./wire-child.ts", import.meta.url);
    [module = source] = await compile([source], join(server.dir, "compiled"));
  });

  afterAll(() => server?.close());

  const events: Record<string, () => Promise<unknown>> = {
    answers: async () => {},
    hangs: () => server.pause(),
    "is gone": () => server.kill(),
  };

  test.each(Object.entries(events))("the server %s: it exits", async (_, strike) => {
    if (server.running) server.resume();
    await using child = new ControlledProcess(module, { args: [`${server.port}`] });
    await child.receive((message) => message === "ready");
    await strike();
    await child.send({ exit: true });
    expect(await child.exited).toMatchObject({ code: 0 });
  });
});
