/** `holdfast dashboard` on servers that are away when it starts. */
import { expect, test } from "vitest";
import { Workshop } from "../cli/command-line.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

test.concurrent.each([
  ["Redis", startRedis],
  ["Postgres", startPostgres],
])("its URL is there before %s is, and the page shows when it is", async (_, start) => {
  await using shop = new Workshop();
  await using server = await start();
  await server.kill();
  const running = shop.start(["dashboard", "--store", server.url]);
  await running.shows("the store has not answered yet");
  await waitUntil(() => running.stdout.includes("\n"), { what: "the URL is printed" });
  const [address, token] = running.stdout.trim().split("#token=");
  const headers = { "x-holdfast-dashboard": "1", authorization: `Bearer ${token}` };
  const live = await fetch(`${address}api/live?view=locks`, { headers });
  let text = "";
  let states: string[] = [];
  for await (const part of live.body ?? []) {
    text += Buffer.from(part).toString();
    states = [...text.matchAll(/"store":{"is":"(\w+)"/g)].map(([, is = ""]) => is);
    if (states.at(-1) === "away" && !server.running) await server.start();
    if (states.at(-1) === "here") break;
  }
  expect(new Set(states)).toEqual(new Set(["asked", "away", "here"]));
  expect(text).toContain(`127.0.0.1:${server.port}`);
});
