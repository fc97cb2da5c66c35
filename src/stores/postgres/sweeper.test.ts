import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { Sweeper } from "./sweeper.js";

const MINUTE_MS = 60_000;

let runtime: ManualRuntime;
/** The statements that were sent. */
let sent: string[];
/** Whether each slice leaves more to do; afterwards none does. */
let answers: (string | Error)[];
let isIdle: boolean;
let isConnected: boolean;
let chance: number;
let sweeper: Sweeper;

beforeEach(() => {
  runtime = new ManualRuntime();
  [sent, answers, isIdle, isConnected, chance] = [[], [], true, true, 0.5];
  const session = {
    get isIdle() {
      return isIdle;
    },
    send: async ({ text }: { text: string }) => {
      sent.push(text);
      const answer = answers.shift() ?? "f";
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const random = { ...runtime.random, fraction: () => chance };
  sweeper = new Sweeper({ ...runtime, random }, () => (isConnected ? session : null));
});

describe("Sweeper", () => {
  it("does nothing while the client does nothing", async () => {
    await runtime.advance(10 * MINUTE_MS);
    expect(sent).toEqual([]);
    expect(runtime.alarms).toBe(0);
  });

  it("asks within two minutes after work, without keeping the process alive", async () => {
    sweeper.onWork();
    sweeper.onWork();
    expect(runtime.keepsAlive).toBe(false);
    await runtime.advance(2 * MINUTE_MS);
    expect(sent).toEqual(["select holdfast.sweep_3(200)"]);
    await runtime.advance(10 * MINUTE_MS);
    expect(sent.length).toBe(1);
  });

  it("goes on for as long as there is more", async () => {
    answers = ["t", "t", "t", "f"];
    sweeper.onWork();
    await runtime.advance(2 * MINUTE_MS);
    expect(sent.length).toBe(4);
    sweeper.onWork();
    await runtime.advance(2 * MINUTE_MS);
    expect(sent.length).toBe(5);
  });

  it("waits until the connection has nothing else to do", async () => {
    isIdle = false;
    sweeper.onWork();
    await runtime.advance(5 * MINUTE_MS);
    expect(sent).toEqual([]);
    isIdle = true;
    await runtime.advance(100);
    expect(sent.length).toBe(1);
  });

  it("bears a slice that fails, and a connection that is gone", async () => {
    answers = [new Error("permission denied")];
    sweeper.onWork();
    await runtime.advance(2 * MINUTE_MS);
    expect(sent.length).toBe(1);
    isConnected = false;
    sweeper.onWork();
    await runtime.advance(2 * MINUTE_MS);
    expect(sent.length).toBe(1);
    isConnected = true;
    sweeper.onWork();
    await runtime.advance(2 * MINUTE_MS);
    expect(sent.length).toBe(2);
  });

  it("stops with close, and one client in eight does a slice then", async () => {
    sweeper.onWork();
    await sweeper.close();
    await runtime.advance(5 * MINUTE_MS);
    sweeper.onWork();
    await runtime.advance(5 * MINUTE_MS);
    expect(sent).toEqual([]);
    chance = 0.1;
    await sweeper.close();
    expect(sent.length).toBe(1);
  });
});
