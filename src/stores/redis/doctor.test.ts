import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { infoFields, replicasIn, serverChecks } from "../redis-client/doctor.js";
import { RIGHTS_PROBE } from "./doctor.js";

const severityOf = (id: string, info: string): string | undefined => {
  const facts = Object.fromEntries(
    ["config", "persistence", "clock"].map((name) => [name, { unknownBecause: "?" }]),
  );
  const known = { ...facts, info: { value: infoFields(info) } } as never;
  return serverChecks.find((check) => check.id === id)?.judge(known, 30_000)?.severity;
};

describe("a server", () => {
  it.each([
    ["redis_version:6.0.16", "danger"],
    ["redis_version:6.2.0", "ok"],
    ["redis_version:7.2.4\r\nvalkey_version:8.0.1", "ok"],
    ["", "danger"],
  ])("with %j is judged as %s", (info, severity) => {
    expect(severityOf("redis/version", info)).toBe(severity);
  });

  it("whose machine has no memory left is found, without maxmemory as well", () => {
    const info = "maxmemory:0\r\nused_memory:95\r\ntotal_system_memory:100";
    expect(severityOf("redis/memory", info)).toBe("warning");
  });

  it("shows its replicas", () => {
    const info = infoFields(
      "# Replication\r\nrole:master\r\nslave0:ip=::1,port=7001,state=online,offset=14,lag=12\r\n",
    );
    expect(replicasIn(info)).toEqual([{ address: "::1:7001", isOnline: true, lagSeconds: 12 }]);
  });
});

it("the probe of rights calls every command of the ACL line that a script calls", () => {
  const page = readFileSync(new URL("../../../docs/stores/redis.md", import.meta.url), "utf8");
  const [line = ""] = /^ACL SETUSER .*$/m.exec(page) ?? [];
  const listed = [...line.matchAll(/ \+(\w+)/g)].map(([, command]) => command);
  const outside = "eval evalsha subscribe unsubscribe ping wait hello select client hsetnx".split(
    " ",
  );
  const probed = [...RIGHTS_PROBE.matchAll(/\{'(\w+)'/g)].map(([, command]) => command);
  expect(probed.sort()).toEqual(listed.filter((one) => !outside.includes(one ?? "")).sort());
});
