/**
 * Compares the rules of a node in TypeScript with the Lua script on a real server, command by
 * command. Times may differ by a round trip.
 */

import fc from "fast-check";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { driverOf } from "../../src/stores/redis-client/supported-clients.js";
import { Layout } from "../../src/stores/redlock/layout.js";
import type { Instruction, Survey } from "../../src/stores/redlock/membership.js";
import { decodeSurvey } from "../../src/stores/redlock/membership.js";
import {
  instruct,
  type NameState,
  type NodeState,
  raise,
  release,
  renew,
  resume,
  revoke,
  vote,
} from "../../src/stores/redlock/node-rules.js";
import {
  decodeRelease,
  decodeRenewal,
  decodeVote,
  releaseArgs,
  renewalsCall,
  resumeArgs,
  voteArgs,
} from "../../src/stores/redlock/protocol.js";
import { RedlockNode, setIdOf } from "../../src/stores/redlock/quorum.js";
import { isFull } from "../fixtures/depth.js";
import { SEED } from "../fixtures/seed.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import type { Reply, RespClient } from "../servers/resp.js";
import { expectKept } from "./kept-record.js";

const SET = "a,b,c";
/** The positions of fields in a marker: process, start of voting, end of long leases. */
const [RUN_AT, FROM_AT, UNTIL_AT] = [46, 102, 128];
const YEAR_US = 31_536_000_000_000;
/** A ballot that no node accepts. */
const AHEAD = "8999999999999999";
/** The value of a lock of another program. */
const STRANGER = {
  ...{ token: 0, span: 0, untilMs: Number.POSITIVE_INFINITY, isRetaken: false },
  channel: null,
};
/** Longer than a round trip, shorter than the difference of any two times in commands. */
const TOLERANCE_MS = 4_000;
/** The life time of a mark that is longer than that of a ballot. */
const LONG_MS = 30 * 86_400_000;
const names = ["x", "y"] as const;
/** The channels of two clients. */
const [ONE, OTHER] = [`holdfast@${"h".repeat(36)}`, `holdfast@${"u".repeat(36)}`];

/** A node on a separate server. */
class Subject implements AsyncDisposable {
  readonly client: Redis;
  readonly node: RedlockNode;
  readonly #server: RedisServer;
  readonly #listener: Redis;
  /** The channel that proves which process answers. */
  readonly #proof: string;
  readonly #connection: RespClient;
  #isListening = false;

  private constructor(server: RedisServer, connection: RespClient, run: string) {
    this.#server = server;
    this.#connection = connection;
    this.#proof = `holdfast@/${run}`;
    this.client = new Redis(server.port);
    this.#listener = this.client.duplicate();
    this.node = new RedlockNode("a", driverOf(this.client));
  }

  static async start(): Promise<Subject> {
    const server = await startRedis();
    const { run_id: run = "" } = await server.info("server");
    return new Subject(server, await server.client(), run);
  }

  ask(...args: readonly (string | number)[]): Promise<Reply> {
    return this.#connection.send(...args);
  }

  /** With a listener, votes skip a check. */
  async listen(isHeard: boolean): Promise<void> {
    if (isHeard === this.#isListening) return;
    if (isHeard) await this.#listener.subscribe(this.#proof);
    else await this.#listener.unsubscribe(this.#proof);
    this.#isListening = isHeard;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    this.#listener.disconnect();
    await this.#connection.close();
    await this.#server.close();
  }
}

type Step =
  | {
      type: "vote";
      name: string;
      owner: string;
      ballot: number;
      span: number;
      ttlMs: number;
      maxTtlMs: number;
      isHeard: boolean;
    }
  | {
      type: "renew";
      name: string;
      owner: string;
      ballot: number;
      span: number;
      ttlMs: number;
      isHeard: boolean;
    }
  | { type: "resume"; name: string; owner: string; ballot: number; ttlMs: number; isHeard: boolean }
  | { type: "release"; name: string; owner: string; ballot: number; keepMs: number }
  | { type: "revoke"; name: string; ballot: number }
  | {
      type: "mark";
      how: "join" | "boot" | "now";
      maxTtlMs: number;
      restMs: number;
      floor: number | null;
      set: string;
    }
  | { type: "admit"; floor: number }
  | { type: "raise"; ttlMs: number; forMs: number }
  | { type: "restart" | "flush" | "wake" | "late" | "over" }
  | { type: "expire"; name: string }
  | { type: "plant"; name: string; at: Place; holds: Held }
  | { type: "clear"; name: string; at: Place };

/** The keys of a node's script, in its order. */
const PLACES = ["marker", "lock", "ballot"] as const;
type Place = (typeof PLACES)[number];
/** `slip`: the text that was there, with one byte changed. */
const HELD = ["hash", "list", "text", "ahead", "slip"] as const;
type Held = (typeof HELD)[number];

/** Ballots that are close to each other, and one far too high. */
const near = fc.integer({ min: 1, max: 30 });
const ballot = fc.oneof(
  { weight: 20, arbitrary: near },
  { weight: 1, arbitrary: fc.constant(2 * YEAR_US) },
);
const name = fc.constantFrom(...names);
const owner = fc.constantFrom("o1", "o2", "o3");
const span = fc.constantFrom(1, 3, 64);
const ttlMs = fc.constantFrom(20_000, 40_000, 60_000);
const maxTtlMs = fc.constantFrom(30_000, 50_000);
const isHeard = fc.boolean();
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("vote"),
      name,
      owner,
      ballot,
      span,
      ttlMs,
      maxTtlMs,
      isHeard,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constant("renew"), name, owner, ballot, span, ttlMs, isHeard }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("resume"), name, owner, ballot, ttlMs, isHeard }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("release"),
      name,
      owner,
      ballot,
      keepMs: fc.constantFrom(0, 0, 30_000, LONG_MS),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("revoke"), name, ballot }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("mark"),
      how: fc.constantFrom("join", "boot", "now", "now", "now"),
      maxTtlMs,
      restMs: fc.constantFrom(0, 0, 100_000),
      // A ballot that a node may have accepted: no node accepts one a year ahead.
      floor: fc.option(near),
      set: fc.constantFrom(SET, SET, SET, "d,e,f"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("admit"), floor: near }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("raise"),
      ttlMs,
      forMs: fc.constantFrom(20_000, 90_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constantFrom("restart", "flush", "wake", "late", "over"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("expire"), name }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("plant"),
      name,
      at: fc.constantFrom(...PLACES),
      holds: fc.constantFrom(...HELD),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant("clear"), name, at: fc.constantFrom(...PLACES) }),
  },
) as fc.Arbitrary<Step>;

/** The real node and the model, with the same commands. */
class Pair {
  readonly #layout = new Layout("d");
  readonly #subject: Subject;
  readonly #model: NodeState;
  readonly #base: number;
  /** By key, the value of another program, in the form of the server. */
  readonly #planted = new Map<string, unknown>();

  constructor(subject: Subject, model: NodeState, base: number) {
    this.#subject = subject;
    this.#model = model;
    this.#base = base;
  }

  static async start(subject: Subject): Promise<Pair> {
    await subject.ask("FLUSHALL");
    const layout = new Layout("d");
    const raw = (await subject.node.ask(layout.keysOfNode(), ["survey"])) as unknown[];
    const { run, nowUs } = decodeSurvey(raw);
    const startedMs = Math.floor(nowUs / 1000) - Number(raw[1]) * 1000;
    return new Pair(
      subject,
      { run, startedMs, marker: null, names: new Map() },
      nowUs + 60_000_000,
    );
  }

  async run(one: Step): Promise<void> {
    const { nowUs } = await this.#survey();
    const [expected, actual] = await this.#both(one, nowUs);
    expectNear(actual, expected, one);
    const { marker } = await this.#survey();
    expectNear(marker, this.#model.marker, one);
    for (const name of names) {
      await this.#expectSameChannel(name, one);
      const [, lock = "", ballot = ""] = this.#layout.keysOf("lock", name);
      const terms = { about: JSON.stringify(one), toleranceMs: TOLERANCE_MS };
      await expectKept(this.#subject, [lock, ballot], this.#state(name), terms);
    }
    // Differences of time must not accumulate.
    this.#model.marker = marker;
    for (const [key, dump] of this.#planted) {
      expect(
        await this.#subject.client.dumpBuffer(key),
        `${key} after ${JSON.stringify(one)}`,
      ).toEqual(dump);
      expect(await this.#subject.ask("PTTL", key)).toBe(-1);
    }
  }

  /** Checks that the same client is told of a revocation. */
  async #expectSameChannel(name: string, one: Step): Promise<void> {
    const { lock } = this.#state(name);
    if (!lock?.channel) return;
    const [, , ballot = ""] = this.#layout.keysOf("lock", name);
    const record = String(await this.#subject.ask("GET", ballot));
    const [, owner, channel] = /^\d+ [HW] (\S+) \d+ \d+ \d+ (\S+) /.exec(record) ?? [];
    expect([owner, channel], JSON.stringify(one)).toEqual([lock.owner, lock.channel]);
  }

  /** Puts the value of another program at a key of the store. */
  async #plant({ name, at, holds }: Extract<Step, { type: "plant" }>): Promise<void> {
    const key = this.#layout.keysOf("lock", name)[PLACES.indexOf(at)] ?? "";
    const before =
      (await this.#subject.ask("TYPE", key)) === "string"
        ? await this.#subject.client.get(key)
        : null;
    await this.#clear(name, at);
    if (holds === "slip") await this.#subject.ask("SET", key, slipped(before));
    else if (holds === "hash") await this.#subject.ask("HSET", key, "a", "1");
    else if (holds === "list") await this.#subject.ask("RPUSH", key, "1");
    else await this.#subject.ask("SET", key, holds === "text" ? "H owner" : AHEAD);
    // A ballot that is only too high counts as a ballot.
    const isBallot = at === "ballot" && holds === "ahead";
    if (!isBallot) this.#planted.set(key, await this.#subject.client.dumpBuffer(key));
    const isMarker = at === "marker";
    const isText = holds === "text" || holds === "slip" || (isMarker && holds === "ahead");
    const foreign = { type: "foreign", key: "", holds: isText ? "string" : holds } as const;
    const state = this.#state(name);
    if (isMarker) this.#model.foreign = foreign;
    else if (at === "lock" && (holds === "hash" || holds === "list")) state.foreignLock = foreign;
    // Any text is the value of a lock of some program.
    else if (at === "lock") state.lock = { ...STRANGER, owner: holds };
    else if (holds === "ahead") state.ballot = { stored: Number(AHEAD), untilUs: Infinity };
    else state.foreignBallot = foreign;
  }

  async #clear(name: string, at: Place): Promise<void> {
    const key = this.#layout.keysOf("lock", name)[PLACES.indexOf(at)] ?? "";
    await this.#subject.ask("DEL", key);
    this.#planted.delete(key);
    if (at === "marker") Object.assign(this.#model, { marker: null, foreign: null });
    if (at === "lock") Object.assign(this.#state(name), { lock: null, foreignLock: null });
    if (at !== "ballot") return;
    const state = this.#state(name);
    // The token and the channel of a lock are stored with its ballot.
    const lock = state.lock && { ...state.lock, token: 0, span: 0, channel: null };
    Object.assign(state, { ballot: null, foreignBallot: null, lock });
  }

  #state(name: string): NameState {
    const state = this.#model.names.get(name) ?? { lock: null, ballot: null };
    this.#model.names.set(name, state);
    return state;
  }

  async #both(one: Step, nowUs: number): Promise<[unknown, unknown]> {
    const model = this.#model;
    const at = (ballot: number): number => this.#base + ballot;
    switch (one.type) {
      case "vote": {
        const { name, owner, span, ttlMs } = one;
        const channel = one.isHeard ? ONE : OTHER;
        await this.#subject.listen(one.isHeard);
        const request = { set: SET, owner, ballot: at(one.ballot), span, ttlMs, channel };
        const args = voteArgs({
          claim: request,
          ballot: request.ballot,
          channel,
          metaText: "{}",
          setId: setIdOf(SET),
          maxTtlMs: one.maxTtlMs,
          waiter: null,
        });
        const raw = await this.#ask(name, args);
        // The description of the holder is not a decision of the node.
        const actual = { ...decodeVote(raw, ttlMs) };
        if (actual.type === "held") Object.assign(actual, { record: null });
        return [vote(model, name, nowUs, request), actual];
      }
      case "renew": {
        const { name, owner, span, ttlMs } = one;
        const channel = one.isHeard ? ONE : OTHER;
        await this.#subject.listen(one.isHeard);
        const request = { set: SET, owner, ballot: at(one.ballot), span, ttlMs, channel };
        const client = { setId: setIdOf(SET), channel };
        const keys = this.#layout.keysOf("lock", name);
        const grant = { claim: request, token: BigInt(request.ballot), keys };
        const call = renewalsCall([{ grant, ttlMs }], client);
        const [raw] = (await this.#subject.node.ask(call.keys, call.args)) as unknown[];
        return [renew(model, name, nowUs, request), decodeRenewal(raw)];
      }
      case "resume": {
        const { name, owner, ttlMs } = one;
        const channel = one.isHeard ? ONE : OTHER;
        await this.#subject.listen(one.isHeard);
        const request = { set: SET, owner, ballot: at(one.ballot), ttlMs, channel };
        const client = { setId: setIdOf(SET), channel };
        const args = resumeArgs(request, BigInt(request.ballot), client);
        return [resume(model, name, nowUs, request), decodeRenewal(await this.#ask(name, args))];
      }
      case "release": {
        const { name, owner, keepMs } = one;
        const request = { owner, ballot: at(one.ballot), keepMs };
        const args = releaseArgs(owner, request.ballot, 50);
        if (keepMs > 0) args.push(`${keepMs}`, "{}");
        return [release(model, name, nowUs, request), decodeRelease(await this.#ask(name, args))];
      }
      case "revoke": {
        const request = { token: at(one.ballot), reason: "why not" };
        const args = ["revoke", `${at(one.ballot)}`, "why not"];
        const raw = await this.#ask(one.name, args);
        return [revoke(model, one.name, nowUs, request), decodeRelease(raw)];
      }
      case "mark": {
        const floor = one.floor === null ? null : at(one.floor);
        const { how, maxTtlMs, restMs, set } = one;
        const { run } = model;
        const instruction: Instruction = { type: "mark", run, how, maxTtlMs, restMs, floor };
        const args = ["mark", run, set, how, `${maxTtlMs}`, `${restMs}`, `${floor ?? ""}`];
        return [instruct(model, nowUs, set, instruction), await this.#tell(args)];
      }
      case "admit": {
        const floor = at(one.floor);
        const instruction: Instruction = { type: "admit", run: model.run, floor };
        const actual = await this.#tell(["admit", model.run, `${floor}`]);
        return [instruct(model, nowUs, SET, instruction), actual];
      }
      case "raise":
        return [
          raise(model, nowUs, SET, one),
          await this.#tell(["raise", SET, `${one.ttlMs}`, `${one.forMs}`]),
        ];
      // The time for granting long leases is over, and then the time of the leases.
      case "late":
      case "over": {
        if (!model.marker?.longUntilMs) return [null, null];
        const agoMs = one.type === "late" ? 5_000 : 2 * TOLERANCE_MS + model.marker.longTtlMs;
        const longUntilMs = Math.floor(nowUs / 1000) - agoMs;
        await this.#subject.ask("SETRANGE", "holdfast:node", `${UNTIL_AT}`, `${longUntilMs}`);
        model.marker = { ...model.marker, longUntilMs };
        return [null, null];
      }
      case "flush":
        await this.#subject.ask("FLUSHALL");
        model.marker = null;
        model.foreign = null;
        model.names.clear();
        this.#planted.clear();
        return [null, null];
      // A restart with all data, like from a snapshot: the marker names another process.
      case "restart":
        if (!model.marker) return [null, null];
        await this.#subject.ask("SETRANGE", "holdfast:node", `${RUN_AT}`, "dead");
        model.marker = { ...model.marker, run: `dead${model.marker.run.slice(4)}` };
        return [null, null];
      // The start of voting has come.
      case "wake":
        if (!model.marker) return [null, null];
        await this.#subject.ask("SETRANGE", "holdfast:node", `${FROM_AT}`, "0000000000001");
        model.marker = { ...model.marker, fromMs: 1 };
        return [null, null];
      case "expire":
        await this.#clear(one.name, "lock");
        return [null, null];
      case "plant":
        await this.#plant(one);
        return [null, null];
      case "clear":
        await this.#clear(one.name, one.at);
        return [null, null];
    }
  }

  #ask(name: string, args: readonly string[]): Promise<unknown> {
    return this.#subject.node.ask(this.#layout.keysOf("lock", name), args);
  }

  async #tell(args: readonly string[]): Promise<boolean> {
    return (await this.#subject.node.ask(this.#layout.keysOfNode(), args)) === 1;
  }

  async #survey(): Promise<Pick<Survey, "nowUs" | "marker">> {
    const raw = await this.#subject.node.ask(this.#layout.keysOfNode(), ["survey"]);
    if (!this.#model.foreign) return decodeSurvey(raw);
    expect(raw).toEqual(["X", "holdfast:node", this.#model.foreign.holds]);
    const [seconds, micros] = (await this.#subject.ask("TIME")) as string[];
    return { nowUs: Number(seconds) * 1_000_000 + Number(micros), marker: null };
  }
}

const TIMES = {
  ...{ remainingMs: 1, waitMs: 1, fromMs: 1, longUntilMs: 1 },
  ...{ nowUs: 1_000, floor: 1_000, top: 1_000 },
};

/** Checks equality, except times, which may differ by a round trip. */
function expectNear(actual: unknown, expected: unknown, step: Step): void {
  const [a, b] = [apart(unnamed(actual)), apart(expected)];
  const about = `${JSON.stringify(step)}: ${JSON.stringify([actual, expected])}`;
  expect(a.rest, about).toEqual(b.rest);
  for (const [at, time] of a.times.entries()) {
    const other = b.times[at];
    if (time === null || other === null || time === Infinity) expect(time, about).toBe(other);
    else expect(Math.abs(time - (other ?? Number.NaN)), about).toBeLessThan(TOLERANCE_MS);
  }
}

/** Changes a digit of a ballot, or of the highest ballot in a marker. */
function slipped(text: string | null): string {
  return text ? `${text.slice(0, 9)}!${text.slice(10)}` : "!";
}

/** Removes the names of keys, which the rules do not know. */
function unnamed(value: unknown): unknown {
  const isForeign = (value as { type?: string } | null)?.type === "foreign";
  return isForeign ? { ...(value as object), key: "" } : value;
}

function apart(value: unknown): { rest: unknown; times: (number | null)[] } {
  if (typeof value !== "object" || value === null) return { rest: value, times: [] };
  const entries = Object.entries(value);
  const isTime = ([key]: [string, unknown]): boolean => Object.hasOwn(TIMES, key);
  const times = entries.filter(isTime).sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    rest: Object.fromEntries(entries.filter((entry) => !isTime(entry))),
    times: times.map(([key, time]) =>
      time === null ? null : Number(time) / TIMES[key as keyof typeof TIMES],
    ),
  };
}

const voted: Step = {
  ...{ type: "vote", name: "x", owner: "o1", ballot: 7, span: 1, ttlMs: 20_000 },
  ...{ maxTtlMs: 30_000, isHeard: true },
};

/** A lease that another client resumes and a third client renews. */
const transfer: Step[] = [
  voted,
  { type: "resume", name: "x", owner: "o1", ballot: 7, ttlMs: 20_000, isHeard: false },
  { type: "renew", name: "x", owner: "o1", ballot: 7, span: 1, ttlMs: 20_000, isHeard: true },
  { type: "revoke", name: "x", ballot: 7 },
];

const released: Step = { type: "release", name: "x", owner: "o1", ballot: 7, keepMs: 0 };
const votedAgain: Step = { ...voted, owner: "o2", ballot: 9 };
const plant = (at: Place, holds: Held): Step => ({ type: "plant", name: "x", at, holds });

/** A mark that stays for thirty days, and other owners that come and go. */
const marked: Step[] = [
  voted,
  { ...released, keepMs: LONG_MS },
  votedAgain,
  { ...released, owner: "o2", ballot: 9 },
  { type: "revoke", name: "x", ballot: 7 },
];

/** Another program replaces a mark, whose record stays. */
const replaced: Step[] = [
  voted,
  { ...released, keepMs: LONG_MS },
  plant("lock", "hash"),
  { type: "revoke", name: "x", ballot: 7 },
];

/** Each ends with a command that the short path must leave to the rules, or decide as they do. */
const shortPaths: Step[][] = [
  [voted, released, votedAgain],
  [voted, released, { ...votedAgain, ballot: 7 }],
  [voted, released, { ...votedAgain, ttlMs: 40_000 }],
  [voted, released, { ...votedAgain, maxTtlMs: 50_000 }],
  [voted, released, { type: "restart" }, votedAgain],
  [voted, released, plant("ballot", "slip"), votedAgain],
  [voted, released, plant("marker", "slip"), votedAgain],
  [voted, released, plant("lock", "hash"), votedAgain],
  [voted, released, plant("ballot", "hash"), votedAgain],
  [voted, released, { type: "clear", name: "x", at: "ballot" }, votedAgain],
  [voted, released, { type: "clear", name: "x", at: "marker" }, votedAgain],
  [voted, { type: "expire", name: "x" }, votedAgain],
  [voted, { type: "expire", name: "x" }, released],
  [voted, plant("lock", "text"), released],
  [voted, plant("ballot", "slip"), released],
  [voted, { ...released, owner: "o2" }],
  [voted, { ...released, ballot: 9 }],
  [voted, released, released],
  // A renewal takes the node again at a ballot that no node votes for.
  [{ ...voted, type: "renew", ballot: 2 * YEAR_US }, { ...released, ballot: 2 * YEAR_US }, voted],
];

const RUNS = isFull ? 400 : 40;
/** In parallel, each on its own server: they mostly wait for answers. */
const LANES = 4;

async function follow(numRuns: number, seed: number, examples: [Step[]][] = []): Promise<void> {
  await using subject = await Subject.start();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      const pair = await Pair.start(subject);
      await pair.run({ type: "mark", how: "now", maxTtlMs: 30_000, restMs: 0, floor: 0, set: SET });
      for (const one of steps) await pair.run(one);
    }),
    { numRuns, seed, examples },
  );
}

describe.concurrent("a node follows its rules", () => {
  test("in examples", async () => {
    const examples = [transfer, marked, replaced, ...shortPaths].map((steps): [Step[]] => [steps]);
    await follow(examples.length, SEED, examples);
  });

  test.each(Array.from({ length: LANES }, (_, lane) => SEED + lane))("at random, seed %i", (seed) =>
    follow(RUNS / LANES, seed),
  );
});
