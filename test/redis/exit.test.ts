/** After `close` Holdfast does not keep the process alive, in any state of the server. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { ControlledProcess } from "../faults/process.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

/** A connection that waits for its end would keep the process for two seconds. */
const AT_ONCE_MS = 1_000;

let server: RedisServer;
beforeEach(async () => {
  server = await startRedis();
});
afterEach(() => server?.close());

const events: Record<string, () => Promise<unknown>> = {
  answers: async () => {},
  "has closed all connections": () => server.ask("CLIENT", "KILL", "SKIPME", "yes"),
  hangs: () => server.pause(),
  "is gone": () => server.kill(),
};

test.each(Object.entries(events))("the server %s: the process exits at once", async (_, strike) => {
  const module = new URL("./closer.mjs", import.meta.url);
  await using child = new ControlledProcess(module, { args: [server.url] });
  await child.receive((message) => message === "ready");
  await strike();
  await child.send({ close: true });
  await child.receive((message) => message === "closed");
  const stopwatch = new Stopwatch();
  expect(await child.exited).toMatchObject({ code: 0 });
  stopwatch.expectLessThan(AT_ONCE_MS);
});
