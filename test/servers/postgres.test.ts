import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { startPostgres } from "./postgres.js";
import { isAlive, isStopped } from "./process-state.js";

it("starts, serves, and leaves nothing behind", async () => {
  const server = await startPostgres();
  const { pid, reaperPid, dir } = server;
  expect(await server.ask("select 1 as one")).toEqual([{ one: 1 }]);
  await server.close();
  expect([pid, reaperPid].filter(isAlive)).toEqual([]);
  expect(existsSync(dir)).toBe(false);
});

it("keeps its data through a crash and a restart, and stops with open connections", async () => {
  await using server = await startPostgres({ settings: { synchronous_commit: "on" } });
  const open = await server.client();
  await open.query("create table t (a int)");
  await open.query("insert into t values (7)");
  await server.kill();
  await expect(server.ask("select 1")).rejects.toThrow("ECONNREFUSED");
  await server.start();
  expect(await server.ask("select a from t")).toEqual([{ a: 7 }]);
  await server.client();
  await server.stop();
  expect(server.running).toBe(false);
  await server.start();
  expect(await server.ask("select a from t")).toEqual([{ a: 7 }]);
});

it("answers requests from a pause when it is resumed", async () => {
  await using server = await startPostgres();
  const client = await server.client();
  await server.pause();
  expect(isStopped(server.pid)).toBe(true);
  const answer = client.query("select 2 as two");
  server.resume();
  expect((await answer).rows).toEqual([{ two: 2 }]);
  await client.end();
  // The end of the test closes a server that is paused.
  await server.pause();
});
