/** Plain commands on a server in memory, with other clients and failures between them. */
import { beforeEach, describe, expect, it } from "vitest";
import { CommandServer } from "../../../test/fixtures/command-server.js";
import type { Driver } from "../redis-client/driver.js";
import { ByCommands } from "./by-commands.js";
import { decodeSight, releaseArgs, renewalsCall, voteArgs } from "./codec.js";
import { BY_COMMANDS } from "./name-record.js";
import { startDelayText } from "./quorum.js";
import { NODE_SCRIPTS, RedlockNode } from "./redlock-node.js";

const DAY_MS = 86_400_000;
const KEYS = ["queue", "lock", "ballot"];
const channel = `holdfast@${"h".repeat(36)}`;
const [A, B] = [`a${BY_COMMANDS}`, `b${BY_COMMANDS}`];

let server: CommandServer;
let by: ByCommands;
/** The ballot of the moment. */
const ballotAt = (ms = 0): number => (server.nowMs + ms) * 1000;

beforeEach(() => {
  server = new CommandServer();
  by = new ByCommands(server.driver);
});

/** Does the work once, after the first command for which this is so. */
function once(
  isDue: (command: string, args: readonly string[]) => boolean,
  work: () => unknown,
): void {
  server.after = (command, args) => {
    if (!isDue(command, args)) return;
    server.after = () => {};
    return work();
  };
}

const fail = (): never => {
  throw new Error("The connection is lost.");
};

function vote(owner: string, ballot: number, ttlMs = 30_000): Promise<unknown> {
  const terms = { channel, metaText: "{}", setId: startDelayText(0), maxTtlMs: 30_000 };
  const claim = { owner, ttlMs, span: 1 };
  return by.run(KEYS, voteArgs({ claim, ballot, waiter: null, ...terms }));
}

async function renew(owner: string, ballot: number, ttlMs: number): Promise<unknown> {
  const grant = { claim: { owner, span: 1 }, token: BigInt(ballot), keys: KEYS };
  const call = renewalsCall([{ grant, ttlMs }], { setId: startDelayText(0), channel });
  const [answer] = (await by.run(call.keys, call.args)) as unknown[];
  return answer;
}

/** The release that leaves a mark. */
function mark(owner: string, ballot: number, keepMs = 60_000): Promise<unknown> {
  return by.run(KEYS, [...releaseArgs(owner, ballot, 50), `${keepMs}`, "{}"]);
}

const revoke = (ballot: number) => by.run(KEYS, ["revoke", `${ballot}`, "why"]);

describe("a renewal", () => {
  it("does not shorten a lease from the time of scripts", async () => {
    server.put("lock", "scripted", 60_000);
    server.put("ballot", `${ballotAt()} H scripted ${ballotAt()} 01 1 ${channel} {}`, DAY_MS);
    expect(await renew("scripted", ballotAt(), 10_000)).toEqual(["G", 60_000]);
    expect(server.leftMs("lock")).toBe(60_000);
    server.nowMs += 5_000;
    expect(await renew("scripted", ballotAt(), 10_000)).toEqual(["G", 60_000]);
    expect(await renew("scripted", ballotAt(), 90_000), "one length").toEqual(["G", 60_000]);
  });

  it("of a lease that is gone says so", async () => {
    expect(await renew("scripted", ballotAt(), 10_000)).toEqual(["N"]);
  });

  it.each([
    [
      "another owner held the lock since",
      (next: number) => ` H ${B} ${next} 01 1 ${channel} {}`,
      ["N"],
    ],
    ["another owner left a mark since", (next: number) => ` D done:${B} ${next} 01 1 - {}`, ["N"]],
    ["its owner was revoked", () => ` V ${A} why`, ["V", "why"]],
  ])("of a key that a late copy has set again, after %s, says so", async (_title, tail, answer) => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    server.put("ballot", `${ballot + 1}${tail(ballot + 1)}`, DAY_MS);
    expect(await renew(A, ballot, 30_000)).toEqual(answer);
    expect(server.get("lock")).toBeNull();
  });

  it("beside the release that leaves a mark lets it do so", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    const isRecord = (command: string, args: readonly string[]): boolean =>
      command === "set" && args[0] === "ballot";
    once(isRecord, () => renew(A, ballot, 30_000));
    expect(await mark(A, ballot)).toBe(1);
    expect(server.get("lock")).toBe(`done:${A}`);
  });

  it("never shortens the life of a ballot", async () => {
    const ballot = ballotAt(5 * DAY_MS);
    expect(await vote(A, ballot)).toBe(1);
    const keptMs = server.leftMs("ballot");
    expect(keptMs).toBeGreaterThan(6 * DAY_MS);
    await renew(A, ballot, 30_000);
    expect(server.leftMs("ballot")).toBe(7 * DAY_MS);
    server.put("ballot", server.get("ballot") ?? "", 9 * DAY_MS);
    await renew(A, ballot, 30_000);
    expect(server.leftMs("ballot")).toBe(9 * DAY_MS);
  });
});

describe("a vote", () => {
  it("that lost its key leaves the record of the next holder as it is", async () => {
    const next = ballotAt(1);
    const late = ballotAt(40_000);
    const other = new ByCommands(server.driver);
    // The key of the first owner ends before its ballot is written.
    once(
      (command) => command === "time",
      async () => {
        server.nowMs += 30_000;
        const held = by;
        by = other;
        expect(await vote(B, next + 30_000_000)).toBe(1);
        by = held;
      },
    );
    expect(await vote(A, late)).toMatchObject([
      "H",
      expect.anything(),
      30_000,
      B,
      expect.anything(),
      0,
    ]);
    expect(server.get("ballot")).toContain(` H ${B} `);
  });

  it("that reads the record after its key expired leaves that of the next holder", async () => {
    let read = (): void => {};
    const reading = new Promise<void>((resume) => (read = resume));
    const slow: Driver = Object.create(server.driver, {
      send: {
        value: async (...call: Parameters<Driver["send"]>) => {
          if (/^m?get$/.test(call[1])) await reading;
          return server.driver.send(...call);
        },
      },
    });
    const next = by;
    by = new ByCommands(slow);
    // The clock of the first client is ahead, so its ballot is above that of the next holder.
    const voting = vote(A, ballotAt(60_000));
    await new Promise((resume) => setImmediate(resume));
    server.nowMs += 30_000;
    by = next;
    expect(await vote(B, ballotAt())).toBe(1);
    read();
    expect(await voting).toMatchObject(["H", expect.anything(), 30_000, B, expect.anything(), 0]);
    expect(server.get("ballot")).toContain(` H ${B} `);
  });

  it.each([
    ["too high", () => ballotAt(400 * DAY_MS), null, ["A", expect.anything()]],
    ["at a ballot far ahead", () => ballotAt(), 400 * DAY_MS, ["X", "ballot", "ahead"]],
  ])("%s leaves no key, also where it was sent again", async (_title, ballot, aheadMs, answer) => {
    if (aheadMs) server.put("ballot", `${ballotAt(aheadMs)}`, 500 * DAY_MS);
    server.put("lock", A, 30_000);
    expect(await vote(A, ballot())).toEqual(answer);
    expect(server.get("lock")).toBeNull();
  });

  it("that is too low leaves the key that its owner had", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    expect(await vote(A, ballot - 1)).toEqual(["L", `${ballot}`]);
    expect(server.get("lock")).toBe(A);
  });

  it("that fails is over for the next call, also where a command took longer", async () => {
    const seen: string[] = [];
    let answer = (): void => {};
    server.after = (command, args) => {
      if (command === "time") return fail();
      if (!args.includes("NX")) return undefined;
      return new Promise<void>((resolve) => (answer = resolve)).then(() => void seen.push("taken"));
    };
    const voting = vote(A, ballotAt()).catch(() => seen.push("failed"));
    await new Promise((resume) => setImmediate(resume));
    expect(seen).toEqual([]);
    answer();
    await voting;
    expect(seen).toEqual(["taken", "failed"]);
  });
});

describe("a mark", () => {
  it.each([
    ["no record", null],
    ["a record of another owner", ` H ${B} 1 01 1 ${channel} {}`],
  ])("is left where there is %s, as long as the owner has the key", async (_title, tail) => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    if (tail) server.put("ballot", `${ballot}${tail}`, DAY_MS);
    else server.texts.delete("ballot");
    expect(await mark(A, ballot)).toBe(1);
    expect(server.get("lock")).toBe(`done:${A}`);
    expect(server.get("ballot")).toContain(` D done:${A} ${ballot} `);
  });

  it("of a lease that is gone is not left, and the record of the next holder stays", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    server.nowMs += 30_000;
    expect(await vote(B, ballotAt())).toBe(1);
    expect(await mark(A, ballot)).toBe(0);
    expect(server.get("lock")).toBe(B);
    expect(server.get("ballot")).toContain(` H ${B} `);
  });

  it("is not told as left where its record cannot be written", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    let count = 0;
    // Another client is always faster.
    server.after = (command) => {
      if (command === "get") server.put("ballot", `${ballot + ++count}`, DAY_MS);
    };
    await expect(mark(A, ballot)).rejects.toMatchObject({ outcome: "unknown" });
    expect(server.get("lock")).toBe(A);
  });

  it("of thirty days is told as done, and can be revoked, until its end", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    expect(await mark(A, ballot, 30 * DAY_MS)).toBe(1);
    server.nowMs += 30 * DAY_MS - 1;
    const sight = decodeSight(await by.run(KEYS, ["wait"]), 30_000);
    expect(sight).toMatchObject({ type: "held", record: { kind: "done", token: BigInt(ballot) } });
    expect(await revoke(ballot)).toBe(1);
    expect(server.get("lock")).toBeNull();
  });

  it.each([
    ["after the mark", "lock"],
    ["between the record and the mark", "ballot"],
  ])("keeps its record where another owner withdraws %s", async (_title, key) => {
    const ballot = ballotAt();
    const other = new ByCommands(server.driver);
    expect(await vote(A, ballot)).toBe(1);
    const isMark = (command: string, [first, text = ""]: readonly string[]): boolean =>
      command === "set" && first === key && text.includes("done:");
    once(isMark, () => other.run(KEYS, releaseArgs(B, ballotAt(5_000), 50)));
    expect(await mark(A, ballot, 30 * DAY_MS)).toBe(1);
    expect(server.get("ballot")).toMatch(`${ballotAt(5_000) + 1} D done:${A} `);
    expect(server.leftMs("ballot")).toBeGreaterThan(server.leftMs("lock"));
    expect(server.leftMs("lock")).toBe(30 * DAY_MS);
  });

  it("is not left beside a foreign ballot", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    server.put("ballot", "foreign", DAY_MS);
    expect(await mark(A, ballot)).toEqual(["X", "ballot", "string"]);
  });
});

describe("a revocation", () => {
  const isDelete = (_command: string, args: readonly string[]): boolean =>
    args[0] === "lock" && args.includes("PXAT");

  it.each([
    ["when the key was deleted", isDelete],
    [
      "when the record told why",
      (_command: string, args: readonly string[]) => args[0] === "ballot" && args.includes("PXAT"),
    ],
    ["when the holder was told", (command: string) => command === "publish"],
  ])("that failed %s goes on", async (_title, isDue) => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    once(isDue, fail);
    await expect(revoke(ballot)).rejects.toThrow("lost");
    expect(await revoke(ballot)).toBe(1);
    expect(server.get("ballot")).toMatch(/ V \S+ why$/);
    expect(new Set(server.published)).toEqual(new Set([`x ${A} ${ballot} why`]));
    expect(await revoke(ballot), "once more").toBe(0);
  });

  it("has told why in the record before it tells the holder", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    const seen: unknown[] = [];
    once(
      (command) => command === "publish",
      () => seen.push(server.get("lock"), server.get("ballot")),
    );
    expect(await revoke(ballot)).toBe(1);
    expect(seen).toEqual([null, `${ballot + 1} V ${A} why`]);
  });

  it("of a holder that is replaced before the record tells it by the message", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    once(isDelete, () => vote(B, ballot + 1));
    expect(await revoke(ballot)).toBe(1);
    expect(server.get("ballot")).toContain(` H ${B} `);
    expect(server.published).toEqual([`x ${A} ${ballot} why`]);
  });

  it("whose command the client sent again was this one", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    // The first copy deleted the key, and its answer was lost with the connection.
    once(
      (command) => command === "time",
      () => {
        server.texts.delete("lock");
        once(isDelete, () => (server.changes += 1));
      },
    );
    expect(await revoke(ballot)).toBe(1);
    expect(server.published).toHaveLength(1);
  });

  it("beside another one is done once", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    expect(await Promise.all([revoke(ballot), revoke(ballot)])).toEqual([1, 0]);
    expect(server.published).toHaveLength(1);
  });

  it("of a lease that has expired revokes nothing", async () => {
    const ballot = ballotAt();
    expect(await vote(A, ballot)).toBe(1);
    server.nowMs += 30_000;
    expect(await revoke(ballot)).toBe(0);
    expect(server.get("ballot")).toContain(` H ${A} `);
    expect(server.published).toEqual([]);
  });
});

it.each([
  ["may look at replicas", true, ["evalsha"]],
  ["asks the master", false, ["evalsha", "set", "get", "mget", "pttl", "time"]],
])("a client that %s", async (_title, readsReplicas, commands) => {
  const sent = new Set<string>();
  const { send } = server.driver;
  const driver: Driver = Object.assign(server.driver, {
    readsReplicas,
    send: async (...call: Parameters<Driver["send"]>) => {
      sent.add(call[1]);
      if (call[1] !== "evalsha") return send(...call);
      throw new Error("NOPERM User mute has no permissions to run the 'evalsha' command");
    },
  });
  const node = new RedlockNode("a", driver, NODE_SCRIPTS.lone);
  const looking = node.ask(KEYS, ["look"]);
  await (readsReplicas ? expect(looking).rejects.toThrow("NOPERM") : looking);
  expect([...sent].sort()).toEqual([...commands].sort());
});
