import { describe, expect, it } from "vitest";
import type { ServerMode } from "./client.js";
import { type NamedServer, type ZookeeperFacts, zookeeperChecks } from "./doctor.js";

function judge(id: string, facts: Partial<ZookeeperFacts>): string | undefined {
  const known = Object.entries(facts).map(([name, value]) => [name, { value }]);
  const check = zookeeperChecks.find((one) => one.id === id);
  return check?.judge(Object.fromEntries(known), 10_000)?.severity;
}

const server = (mode: ServerMode | null, version: string | null = "3.8.0"): NamedServer => ({
  server: "a:2181",
  status: { version, mode },
});

describe("ZooKeeper", () => {
  it("before 3.5 is refused", () => {
    expect(judge("zookeeper/version", { servers: [server("leader", "3.4.14")] })).toBe("danger");
    expect(judge("zookeeper/version", { servers: [server("leader", "3.10.0")] })).toBe("ok");
  });

  it("in read-only mode is found", () => {
    const servers = [server("leader"), server("read_only")];
    expect(judge("zookeeper/quorum", { servers })).toBe("warning");
    expect(judge("zookeeper/quorum", { servers: [server("read_only")] })).toBe("danger");
  });

  it("with an even number of servers is noted", () => {
    expect(judge("zookeeper/ensemble", { servers: [server("leader")], voters: 4 })).toBe("note");
  });

  it("that does not tell its mode has no use of direct", () => {
    const servers = [server("leader"), server(null, null)];
    expect(judge("zookeeper/direct", { servers, isDirect: true })).toBe("warning");
    expect(judge("zookeeper/direct", { servers, isDirect: false })).toBeUndefined();
    expect(judge("zookeeper/direct", { servers: [server("leader")], isDirect: true })).toBe("ok");
  });
});
