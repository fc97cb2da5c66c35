import { describe, expect, it } from "vitest";
import { isAlive } from "./process-state.js";
import { startZookeeper, startZookeeperEnsemble, zookeeperMissing } from "./zookeeper.js";

const missing = zookeeperMissing();

describe.skipIf(missing)(`a ZooKeeper server${missing ? ` (${missing})` : ""}`, () => {
  it("has the ticks and the bounds of sessions that it is given", async () => {
    await using server = await startZookeeper({ tickMs: 200, minSessionMs: 500 });
    const conf = await server.ask("conf");
    expect(conf).toContain("tickTime=200\n");
    expect(conf).toContain("minSessionTimeout=500\n");
    expect(conf).toContain("maxSessionTimeout=4000\n");
    expect(await server.mode()).toBe("standalone");
    const { pid } = server;
    await server.close();
    expect(isAlive(pid)).toBe(false);
  });

  it("elects another leader when the old one is cut off, and the old one follows", {
    timeout: 300_000,
  }, async () => {
    await using ensemble = await startZookeeperEnsemble(3, { tickMs: 200 });
    const old = await ensemble.leader();
    ensemble.cutOff(old);
    const others = ensemble.members.filter((member) => member !== old);
    const leader = await ensemble.leader(others);
    expect(leader).not.toBe(old);
    await ensemble.heal();
    expect(await ensemble.leader()).toBe(leader);
    expect(await old.mode()).toBe("follower");
    await old.kill();
    await old.start();
    expect(await ensemble.followers()).toContain(old);
  });
});
