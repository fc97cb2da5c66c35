import { expect, it } from "vitest";
import { Holdfast } from "../../api/holdfast.js";
import { MemorySpace, memoryStore } from "./index.js";

const MAX_TURNS = 8;

it.each(["revoked", "released"])(
  "a lease that is %s while its own process resumes it has one holder",
  async (end) => {
    for (let turns = 0; turns < MAX_TURNS; turns += 1) {
      const space = new MemorySpace();
      const [locks, rival] = [
        new Holdfast(memoryStore({ space })),
        new Holdfast(memoryStore({ space })),
      ];
      const lease = await locks.mutex("a").acquire({ transferable: true });
      const ended = async (): Promise<unknown> => {
        for (let turn = 0; turn < turns; turn += 1) await null;
        const { token } = lease;
        return end === "released" ? lease.release() : locks.revoke("a", { token, reason: "test" });
      };
      const [resumed] = await Promise.all([locks.resume(lease.handle ?? ""), ended()]);
      // The store answers in one turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      const next = await rival.mutex("a").tryAcquire();
      const held = [lease, resumed, next].filter((one) => one?.state === "held");
      expect(held, `after ${turns} turns`).toHaveLength(1);
      await Promise.all([locks.close(), rival.close()]);
    }
  },
);
