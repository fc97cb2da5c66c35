import { describe, expect, it } from "vitest";
import { cpuUsOf, cpuUsOfChildren, measured, sumOf } from "./costs.js";

describe("the cost of an operation", () => {
  it("is what the servers and this process spent, shared out among the operations", async () => {
    let work = 100;
    const servers = { counters: async () => sumOf([{ bytes: work }, { bytes: 7 }]) };
    const { more } = await measured(servers, 10, async () => {
      work += 50;
    });
    expect(more).toMatchObject({ "bytes/pair": 5, "client CPU µs/pair": expect.any(Number) });
  });

  it("is known of another process where Linux tells it", () => {
    const isLinux = process.platform === "linux";
    const { user, system } = process.cpuUsage();
    const told = cpuUsOf(process.pid);
    if (isLinux) expect(Math.abs(told - user - system)).toBeLessThan(100_000);
    else expect(told).toBeNaN();
    expect(cpuUsOf(undefined)).toBeNaN();
    expect(cpuUsOfChildren()).toSatisfy(isLinux ? Number.isFinite : Number.isNaN);
  });
});
