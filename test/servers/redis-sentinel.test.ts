import { expect, it } from "vitest";
import { isAlive } from "./process-state.js";
import { startSentinel } from "./redis-sentinel.js";

it("promotes a replica on demand and when the master dies", async () => {
  const group = await startSentinel();
  const pids = [...group.servers, ...group.sentinels].map((server) => server.pid);
  try {
    const first = await group.master();
    expect(first).toBe(group.servers[0]);
    const second = await group.promote();
    expect(second).not.toBe(first);

    await second.kill();
    const third = await group.promoted(second);
    expect(await third.ask("SET", "a", 1)).toBe("OK");
  } finally {
    await group[Symbol.asyncDispose]();
  }
  expect(pids.filter(isAlive)).toEqual([]);
});
