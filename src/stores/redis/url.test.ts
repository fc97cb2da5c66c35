import { expect, it } from "vitest";
import { readRedisUrl } from "./url.js";

async function targetOf(url: string) {
  return (await readRedisUrl(new URL(url), [])).target;
}

it.each([
  ["redis+cluster://h", null],
  ["redis+cluster://h?tls=true", {}],
  ["redis+cluster://h?tls=1", {}],
  ["redis+cluster://h?tls=false", null],
  ["redis+cluster://h?tls=0", null],
  ["rediss://h", {}],
  ["rediss://h?tls=true", {}],
  ["rediss://h?tls=false", {}],
])("%s: has TLS if the URL says so", async (url, tls) => {
  expect((await targetOf(url)).tls).toEqual(tls);
});

it.each(["yes", "on", "TRUE", ""])("tls=%s is refused", async (text) => {
  const read = targetOf(`redis+cluster://u:secret@h?tls=${text}`);
  await expect(read).rejects.toThrow(`Invalid tls: "${text}". It must be true or false.`);
});

it("a Cluster has no database to choose", async () => {
  await expect(targetOf("redis+cluster://h/5")).rejects.toThrow("must name no database but 0");
  expect((await targetOf("redis+cluster://h/0")).database).toBe(0);
});
