import { describe, expect, it } from "vitest";
import { type EtcdFacts, etcdChecks, quantile, readMetrics } from "./doctor.js";

/** The severity that a check gives these facts. */
function judge(id: string, facts: Partial<EtcdFacts>, ttlMs = 30_000): string | undefined {
  const known = Object.entries(facts).map(([name, value]) => [name, { value }]);
  const check = etcdChecks.find((one) => one.id === id);
  return check?.judge(Object.fromEntries(known), ttlMs)?.severity;
}

const status = (version: string, leader = 7n) => ({
  status: { header: { revision: 1n, raftTerm: 2n }, version, leader },
});

const FSYNC = "etcd_disk_wal_fsync_duration_seconds";
const metricsOf = (slow: number, changes: number): ReturnType<typeof readMetrics> =>
  readMetrics(`# HELP x
${FSYNC}_bucket{le="0.001"} ${1_000 - slow}
${FSYNC}_bucket{le="0.032"} ${1_000 - slow}
${FSYNC}_bucket{le="0.128"} 1000
${FSYNC}_bucket{le="+Inf"} 1000
${FSYNC}_count 1000
etcd_server_leader_changes_seen_total ${changes}
process_start_time_seconds 1.6e+09
`);

describe("etcd", () => {
  it.each([
    ["3.3.10", "danger"],
    ["3.4.23", "warning"],
    ["3.4.31", "ok"],
    ["3.5.2", "warning"],
    ["3.5.12", "warning"],
    ["3.5.13", "ok"],
    ["3.6.1", "ok"],
  ])("%s is judged as %s", (version, severity) => {
    expect(judge("etcd/version", status(version))).toBe(severity);
  });

  it("without a leader, or with data that differs, is a danger", () => {
    expect(judge("etcd/leader", status("3.5.21", 0n))).toBe("danger");
    expect(judge("etcd/leader", status("3.5.21"))).toBe("ok");
    expect(judge("etcd/alarms", { alarms: ["corrupt"] })).toBe("danger");
  });

  it("on a slow disk is found by its metrics", () => {
    expect(quantile(metricsOf(0, 0), FSYNC, 0.99)).toBe(0.001);
    expect(judge("etcd/fsync", { metrics: [metricsOf(0, 0)] })).toBe("ok");
    expect(judge("etcd/fsync", { metrics: [metricsOf(0, 0), metricsOf(50, 0)] })).toBe("warning");
    expect(judge("etcd/fsync", { metrics: [readMetrics("")] })).toBeUndefined();
  });

  it("with many elections is found by its metrics", () => {
    const nowSeconds = 1.6e9 + 2 * 3_600;
    const at = (changes: number) =>
      judge("etcd/elections", { metrics: [metricsOf(0, changes)], nowSeconds });
    expect(at(3)).toBe("ok");
    expect(at(30)).toBe("warning");
  });

  it("with two members endures no more than with one", () => {
    const member = { name: "a", clientURLs: [] };
    expect(judge("etcd/members", { members: [member, member] })).toBe("note");
    const learner = { ...member, isLearner: true };
    expect(judge("etcd/members", { members: [member, learner] })).toBe("warning");
  });
});
