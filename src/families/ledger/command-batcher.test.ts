import { beforeEach, describe, expect, it } from "vitest";
import { type LedgerArbiter, LedgerServer } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { StoreError } from "../../errors/index.js";
import type { Heartbeat, Inspect, Renew } from "../../rules/ledger-command.js";
import { Limits } from "../../time/limits.js";
import { CommandBatcher } from "./command-batcher.js";

const inspect = (key: string): Inspect => ({ type: "inspect", key });
const renew = (key: string): Renew => ({
  type: "renew",
  key,
  owner: "o",
  ttlUs: 1_000,
  notAfterUs: 0,
  seenToken: 0,
});
const heartbeat = (key: string): Heartbeat => ({ type: "heartbeat", key, client: "c" });

let runtime: ManualRuntime;
let server: LedgerServer;
let arbiter: LedgerArbiter;
let batcher: CommandBatcher;

beforeEach(() => {
  runtime = new ManualRuntime();
  server = new LedgerServer(runtime);
  arbiter = server.connect();
  batcher = new CommandBatcher(arbiter, new Limits(runtime));
});

describe("commands of one turn", () => {
  it("travel as one call, in order, and each gets its own answer", async () => {
    const answers = Promise.all([
      batcher.send(inspect("l:a")),
      batcher.send(heartbeat("l:b")),
      batcher.send(inspect("l:c")),
    ]);
    await Promise.resolve();
    const late = batcher.send(inspect("l:d"));
    const types = (await answers).map(({ reply }) => reply.type);
    await late;
    expect(types).toEqual(["view", "heartbeat", "view"]);
    expect(arbiter.calls.map((call) => call.map(({ key }) => key))).toEqual([
      ["l:a", "l:b", "l:c", "l:d"],
    ]);
  });

  it("are not held up by an earlier call that has no answer yet", async () => {
    arbiter.latencyMs = 50;
    const first = batcher.send(inspect("l:a"));
    await settled();
    const second = batcher.send(inspect("l:b"));
    await settled();
    expect(arbiter.calls).toHaveLength(2);
    await runtime.advance(100);
    await Promise.all([first, second]);
  });

  it("travel shard by shard", async () => {
    arbiter.shards = (key) => key.slice(0, 3);
    const keys = ["l:a1", "l:b1", "l:a2", "l:b2"];
    await Promise.all(keys.map((key) => batcher.send(inspect(key))));
    expect(arbiter.calls.map((call) => call.map(({ key }) => key))).toEqual([
      ["l:a1", "l:a2"],
      ["l:b1", "l:b2"],
    ]);
  });

  it("are sent once each where renewals follow others", async () => {
    const keys = Array.from({ length: 300 }, (_, index) => `l:${index}`);
    await Promise.all(keys.map((key, at) => batcher.send(at < 128 ? inspect(key) : renew(key))));
    expect(arbiter.calls.map((call) => call.length)).toEqual([128, 172]);
    expect(arbiter.sent.map(({ key }) => key)).toEqual(keys);
  });

  it.each([
    { what: "calls that keep both sides busy", make: inspect, most: 128 },
    { what: "as few calls as can be, where they are renewals", make: renew, most: 1_000 },
  ])("travel in $what", async ({ make, most }) => {
    const keys = Array.from({ length: 2_500 }, (_, index) => `l:${index}`);
    const answers = await Promise.all(keys.map((key) => batcher.send(make(key))));
    expect(answers).toHaveLength(2_500);
    const sizes = arbiter.calls.map((call) => call.length);
    expect(sizes).toEqual(keys.flatMap((_, at) => (at % most ? [] : [Math.min(most, 2_500 - at)])));
    expect(arbiter.sent.map(({ key }) => key)).toEqual(keys);
  });
});

describe("a single command", () => {
  it("leaves in the turn in which it was issued, without a timer", async () => {
    void batcher.send(inspect("l:a"));
    expect(runtime.alarms).toBe(0);
    let hasLeft = false;
    await new Promise<void>((resume) => {
      process.nextTick(() => {
        hasLeft = arbiter.calls.length === 1;
        resume();
      });
    });
    expect(hasLeft).toBe(true);
  });

  it("by postNow has left when the call returns, before all that wait", async () => {
    const waiting = batcher.send(inspect("l:a"));
    const now = new Promise((onAnswer, onFailure) => {
      batcher.postNow(inspect("l:b"), { onAnswer, onFailure });
    });
    expect(arbiter.sent.map(({ key }) => key)).toEqual(["l:b"]);
    await Promise.all([waiting, now]);
    expect(arbiter.sent.map(({ key }) => key)).toEqual(["l:b", "l:a"]);
  });
});

describe("an answer", () => {
  it("tells when its request was sent, by our clock, and the store's time", async () => {
    arbiter.latencyMs = 30;
    const sent = batcher.send(inspect("l:a"));
    await runtime.advance(60);
    const { sentMs, nowUs, resent } = await sent;
    expect(sentMs).toBe(1_000);
    expect(nowUs).toBe((1_030 + server.aheadMs) * 1000);
    expect(resent).toBe(false);
  });

  it("tells that the command may arrive once more", async () => {
    arbiter.next("inspect", "answered twice");
    expect(await batcher.send(inspect("l:a"))).toMatchObject({ resent: true });
  });
});

describe("a failure", () => {
  it("of the call is unknown for all its commands, whatever was thrown", async () => {
    arbiter.next("inspect", "reply broken");
    const outcomes = await Promise.allSettled([
      batcher.send(inspect("l:a")),
      batcher.send(heartbeat("l:b")),
    ]);
    for (const outcome of outcomes) {
      const error = outcome.status === "rejected" ? outcome.reason : null;
      expect(error).toBeInstanceOf(StoreError);
      expect(error).toMatchObject({ outcome: "unknown", retryable: true });
      expect(error.message).toContain("connection reset");
      expect(error.cause).toBeInstanceOf(Error);
    }
  });

  it("that the store explains itself is passed on as it is", async () => {
    const error = new StoreError("No script", { outcome: "not_applied", retryable: false });
    arbiter.next("inspect", error);
    await expect(batcher.send(inspect("l:a"))).rejects.toBe(error);
  });

  it("of one command leaves the other commands of its call alone", async () => {
    const error = new StoreError("Wrong type", { outcome: "not_applied" });
    arbiter.impostor = (commands) =>
      commands.map((one) => (one.key === "l:b" ? error : server.do(one)));
    const [a, b, c] = await Promise.allSettled(
      ["l:a", "l:b", "l:c"].map((key) => batcher.send(inspect(key))),
    );
    expect([a?.status, b?.status, c?.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(b).toMatchObject({ reason: error });
  });

  it("to answer a command at all is an error, too", async () => {
    arbiter.impostor = () => [];
    await expect(batcher.send(inspect("l:a"))).rejects.toBeInstanceOf(StoreError);
  });

  it("to answer the call ends after 5 s, as unknown", async () => {
    arbiter.next("inspect", "reply lost");
    const sent = Promise.allSettled([batcher.send(inspect("l:a")), batcher.send(inspect("l:b"))]);
    await runtime.advance(4_999);
    expect(runtime.alarms).toBe(1);
    await runtime.advance(1);
    for (const outcome of await sent) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { outcome: "unknown" } });
    }
    expect(runtime.alarms).toBe(0);
  });
});

describe("syncClock", () => {
  it("asks for the store's time once, for all who wait, and never again", async () => {
    arbiter.latencyMs = 10;
    const syncs = [batcher.syncClock("l:a"), batcher.syncClock("l:b")];
    await runtime.advance(20);
    await Promise.all(syncs);
    expect(arbiter.calls).toEqual([[]]);
    expect(batcher.syncClock("l:a")).toBeUndefined();
    expect(batcher.time("l:a").isKnown).toBe(true);
  });

  it("fails when the store does, and may be tried again", async () => {
    arbiter.fate = "request broken";
    await expect(batcher.syncClock("l:a")).rejects.toBeInstanceOf(StoreError);
    arbiter.fate = "answered";
    await batcher.syncClock("l:a");
    expect(batcher.time("l:a").isKnown).toBe(true);
  });
});
