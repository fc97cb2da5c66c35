import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import type { Claim } from "../../contract/store.js";
import type { Driver } from "../redis-client/client.js";
import { Grants, QuorumGrant } from "./grants.js";
import { Layout } from "./layout.js";
import { Membership } from "./membership.js";
import { Quorum, RedlockNode } from "./quorum.js";
import { type Lease, MAX_LEASES, Renewals } from "./renewal.js";

const TTL_MS = 30_000;
const RENEWED = { type: "renewed", waiting: false };
const ENDED = { type: "ended" };
const KEPT = ["G", TTL_MS, 0];
const layout = new Layout("");

/** A node that knows of leases of every length, and answers renewals as a test says. */
class FakeNode {
  readonly node: RedlockNode;
  /** The number of leases in each call. */
  readonly calls: number[] = [];
  #announcements = 0;
  /** Whether the node takes an announcement, by how many there were. */
  isAnnouncing: (tries: number) => boolean = () => true;
  /** The answer to a call with this many leases. */
  reply: (leases: number) => unknown = (leases) => Array(leases).fill(KEPT);

  constructor(name: string) {
    const send: Driver["send"] = async (_key, _command, [, count, ...rest]) => {
      if (rest[Number(count)] === "raise") {
        this.#announcements += 1;
        return this.isAnnouncing(this.#announcements) ? 1 : Promise.reject(new Error("away"));
      }
      const leases = (Number(count) - 1) / 2;
      this.calls.push(leases);
      return this.reply(leases);
    };
    this.node = new RedlockNode(name, { send } as Driver);
  }

  /** Answers for one lease of a call in another way, and keeps all other leases. */
  answerAt(at: number, answer: unknown): void {
    this.reply = (leases) => Array(leases).fill(KEPT).with(at, answer);
  }
}

let runtime: ManualRuntime;
let nodes: FakeNode[];
let grants: Grants;
let renewals: Renewals;

beforeEach(() => {
  runtime = new ManualRuntime();
  nodes = ["a", "b", "c"].map((name) => new FakeNode(name));
  const limits = { nodeTimeoutMs: 50, driftFactor: 0 };
  const quorum = new Quorum(
    nodes.map(({ node }) => node),
    limits,
    runtime,
  );
  const rules = { maxTtlMs: TTL_MS, announceMs: 3_600_000, bootstrap: "wait" } as const;
  const membership = new Membership(quorum, layout.keysOfNode(), rules);
  grants = new Grants(quorum.nodes);
  renewals = new Renewals(quorum, membership, grants, { channel: "holdfast@me" });
});

function leasesOf(count: number): Lease[] {
  return Array.from({ length: count }, (_, at) => {
    const claim = { space: "lock", name: `n${at}`, owner: `o${at}`, span: 1, ttlMs: TTL_MS };
    const keys = layout.keysOf("lock", claim.name);
    const grant = new QuorumGrant(claim as Claim, keys, 64 * (at + 1), runtime.nowMs + 10_000);
    return { grant, ttlMs: TTL_MS };
  });
}

/** Those of the fake nodes that a test changes. */
const some = (...names: number[]): FakeNode[] => nodes.filter((_, at) => names.includes(at));

describe("a batch of renewals", () => {
  it("is one call for each node", async () => {
    const leases = leasesOf(3);
    expect(await renewals.renew(leases)).toEqual([RENEWED, RENEWED, RENEWED]);
    for (const { calls } of nodes) expect(calls).toEqual([3]);
    // The nodes are asked at 1,000 and keep the leases for 30,000; 2 are lost by rounding.
    for (const { grant } of leases) expect(grant.deadlineMs).toBe(30_998);
  });

  it("is split when it is too large", async () => {
    const leases = leasesOf(2 * MAX_LEASES + 1);
    const results = await renewals.renew(leases);
    expect(results).toEqual(Array(leases.length).fill(RENEWED));
    for (const { calls } of nodes) expect(calls).toEqual([MAX_LEASES, MAX_LEASES, 1]);
  });

  it("has no lease that is over already", async () => {
    const leases = leasesOf(3);
    const [, over] = leases;
    if (over) over.grant.deadlineMs = runtime.nowMs;
    expect(await renewals.renew(leases)).toEqual([RENEWED, ENDED, RENEWED]);
    expect(over?.grant.loss).toEqual({ reason: "expired", detail: "" });
    for (const { calls } of nodes) expect(calls).toEqual([2]);
  });

  it.each([
    ["gone", ["N"], { reason: "missing", detail: "" }],
    ["revoked", ["V", "by hand"], { reason: "revoked", detail: "by hand" }],
    ["of another owner", ["H"], { reason: "replaced", detail: "" }],
  ])("renews all leases but one that is %s, which ends", async (_title, answer, loss) => {
    const leases = leasesOf(3);
    for (const node of some(0, 1)) node.answerAt(1, answer);
    expect(await renewals.renew(leases)).toEqual([RENEWED, ENDED, RENEWED]);
    expect(leases.map(({ grant }) => grant.loss)).toEqual([null, loss, null]);
    expect(leases.map(({ grant }) => grant.deadlineMs)).toEqual([
      30_998,
      Number.NEGATIVE_INFINITY,
      30_998,
    ]);
  });

  it.each([
    ["not readable", ["G", "soon"]],
    ["at a foreign key", ["X", "n1", "hash"]],
    ["one whose verb fails", ["E", "OOM command not allowed"]],
  ])("renews all leases but one that is %s", async (_title, answer) => {
    const leases = leasesOf(3);
    const before = leases[1]?.grant.deadlineMs;
    for (const node of some(0, 1)) node.answerAt(1, answer);
    expect(await renewals.renew(leases)).toMatchObject([RENEWED, { type: "unknown" }, RENEWED]);
    expect(leases.map(({ grant }) => grant.deadlineMs)).toEqual([30_998, before, 30_998]);
  });

  it("ends a lease that is gone at once, while another one has no answer", async () => {
    for (const node of some(2)) node.reply = () => new Promise(() => {});
    for (const node of some(0)) node.reply = () => [["N"], ["N"]];
    for (const node of some(1)) node.reply = () => [["N"], KEPT];
    const [dead, other] = leasesOf(2) as [Lease, Lease];
    grants.add(dead.grant);
    const results = renewals.renew([dead, other]);
    await settled();
    expect(dead.grant.loss).toMatchObject({ reason: "missing" });
    expect(dead.grant.deadlineMs).toBe(Number.NEGATIVE_INFINITY);
    await runtime.advance(5_000);
    expect(await results).toMatchObject([ENDED, { type: "unknown" }]);
  });

  it("holds where one node fails for one lease, and another node for another lease", async () => {
    nodes[0]?.answerAt(0, ["N"]);
    nodes[1]?.answerAt(1, ["E", "OOM command not allowed"]);
    expect(await renewals.renew(leasesOf(3))).toEqual([RENEWED, RENEWED, RENEWED]);
  });

  it("does not wait for a silent node", async () => {
    for (const node of some(2)) node.reply = () => new Promise(() => {});
    expect(await renewals.renew(leasesOf(2))).toEqual([RENEWED, RENEWED]);
  });

  it("extends each lease at once, also where another lease needs the silent node", async () => {
    for (const node of some(2)) node.reply = () => new Promise(() => {});
    for (const node of some(0)) node.answerAt(1, ["N"]);
    const leases = leasesOf(2);
    const results = renewals.renew(leases);
    await settled();
    expect(leases.map(({ grant }) => grant.deadlineMs)).toEqual([30_998, 11_000]);
    await runtime.advance(5_000);
    expect(await results).toMatchObject([RENEWED, { type: "unknown" }]);
  });

  it.each([
    ["too short", (leases: number) => Array(leases - 1).fill(KEPT)],
    ["too long", (leases: number) => Array(leases + 1).fill(KEPT)],
    ["no list", () => "G"],
    ["empty", () => []],
  ])("does not count a reply that is %s", async (_title, reply) => {
    for (const node of some(0)) node.reply = reply;
    expect(await renewals.renew(leasesOf(2))).toEqual([RENEWED, RENEWED]);
    for (const node of some(1)) node.reply = reply;
    const leases = leasesOf(2);
    expect(await renewals.renew(leases)).toMatchObject([{ type: "unknown" }, { type: "unknown" }]);
    expect(leases.map(({ grant }) => grant.deadlineMs)).toEqual([11_000, 11_000]);
  });

  it("counts the deadline from when it was sent, however late the answers are", async () => {
    const answers: (() => void)[] = [];
    for (const node of nodes) {
      node.reply = (leases) =>
        new Promise((resolve) => answers.push(() => resolve(Array(leases).fill(KEPT))));
    }
    const leases = leasesOf(2);
    const results = renewals.renew(leases);
    await runtime.advance(4_000);
    for (const answer of answers) answer();
    expect(await results).toEqual([RENEWED, RENEWED]);
    for (const { grant } of leases) expect(grant.deadlineMs).toBe(30_998);
  });

  it("that is answered after the deadline counts", async () => {
    const answers: (() => void)[] = [];
    for (const node of nodes) {
      node.reply = () => new Promise((resolve) => answers.push(() => resolve([KEPT])));
    }
    const [lease] = leasesOf(1);
    if (!lease) throw new Error("no lease");
    lease.grant.deadlineMs = runtime.nowMs + 1_000;
    const results = renewals.renew([lease]);
    await runtime.advance(2_000);
    for (const answer of answers) answer();
    expect(await results).toEqual([RENEWED]);
  });

  it("repeats a forgotten announcement once, for the leases that need it", async () => {
    const forgotten = ["T", "10000"];
    for (const node of nodes) {
      node.reply = (leases) => (leases === 2 ? [KEPT, forgotten] : [forgotten]);
    }
    const results = await renewals.renew(leasesOf(2));
    expect(results).toMatchObject([RENEWED, { type: "unknown" }]);
    for (const { calls } of nodes) expect(calls).toEqual([2, 1]);
  });

  it("repeats an announcement that failed at first, and succeeds", async () => {
    for (const node of nodes) {
      node.isAnnouncing = (tries) => tries > 1;
      node.reply = () => (node.calls.length === 1 ? [["T", "10000"]] : [KEPT]);
    }
    const [lease] = leasesOf(1);
    if (!lease) throw new Error("no lease");
    expect(await renewals.renew([{ ...lease, ttlMs: 2 * TTL_MS }])).toEqual([RENEWED]);
  });

  it("says that a failed verb may have written", async () => {
    for (const node of nodes) node.answerAt(0, ["E", "NOPERM no permissions (user_script)"]);
    const [result] = await renewals.renew(leasesOf(1));
    expect(result).toMatchObject({ type: "unknown", error: { outcome: "unknown" } });
  });
});
