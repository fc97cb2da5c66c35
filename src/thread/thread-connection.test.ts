import { MessageChannel } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ManualRuntime } from "../../test/fixtures/manual-runtime.js";
import type { FromThread, ToThread } from "./messages.js";
import { Backlog } from "./outbox.js";
import { ThreadConnection } from "./thread-connection.js";

const START_MS = 10_000;
const CLOSE_MS = 3_000;
const SILENCE_MS = 30_000;
const NEWS_MS = 1_000;

let time: ManualRuntime;
let channel: MessageChannel;
let backlog: Backlog;
const thread = { onSilence: vi.fn(), onClose: vi.fn(async () => {}) };
beforeEach(() => {
  time = new ManualRuntime();
  channel = new MessageChannel();
  backlog = new Backlog();
  vi.clearAllMocks();
});
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

function linked(): ThreadConnection {
  return new ThreadConnection(thread, channel.port1, backlog, time.timers);
}

/** Answers the calls of a link, except those that it is told to leave. */
function answer(except: readonly string[] = []): void {
  channel.port2.on("message", (messages: readonly ToThread[]) => {
    const answers = messages.flatMap((message): FromThread[] =>
      message.type === "call" && !except.includes(message.name)
        ? [{ type: "answer", id: message.id, value: null }]
        : [],
    );
    backlog.onSent(answers.length);
    channel.port2.postMessage(answers);
  });
}

describe("ThreadConnection", () => {
  it("gives up a thread that does not start, and does not wait for it to close", async () => {
    const link = linked();
    const started = expect(link.start()).rejects.toThrow("did not start within 10000 ms");
    await time.advance(START_MS - 1);
    expect(thread.onSilence).not.toHaveBeenCalled();
    await time.advance(1);
    await started;
    expect(thread.onSilence).toHaveBeenCalledOnce();
    await link.close();
    expect(thread.onClose).toHaveBeenCalledWith(link);
    expect(time.alarms).toBe(0);
  });

  it("hears a thread that started while this one was blocked", async () => {
    let look = (): void => {};
    const after: ManualRuntime["timers"]["after"] = (_, task) => {
      look = task;
      return { cancel: () => {}, keepAlive: () => {} };
    };
    const link = new ThreadConnection(thread, channel.port1, backlog, { ...time.timers, after });
    const started = link.start();
    channel.port2.postMessage([{ type: "answer", id: 1, value: null }] satisfies FromThread[]);
    // The timer is the first to run after the block; the answer still waits in the port.
    look();
    expect(thread.onSilence).not.toHaveBeenCalled();
    await started;
  });

  it("ends the calls under way when its store is closed, answered or not", async () => {
    answer(["inspect"]);
    const link = linked();
    await link.start();
    const pending = link.call("inspect", "lock", "m").answer;
    const failed = expect(pending).rejects.toMatchObject({
      message: "The store was closed before it answered.",
      retryable: false,
    });
    await link.close();
    await failed;
    expect(thread.onClose).toHaveBeenCalledWith(link);
    expect(time.alarms).toBe(0);
  });

  it("closes where the thread does not answer", async () => {
    answer(["close"]);
    const link = linked();
    await link.start();
    const closed = link.close();
    await time.advance(CLOSE_MS);
    await closed;
    expect(thread.onClose).toHaveBeenCalledWith(link);
  });

  it("fails a call whose answer takes too long, and hears what comes later", async () => {
    answer(["inspect"]);
    const link = linked();
    await link.start();
    const onLateAnswer = vi.fn();
    link.listen({ onUnasked: () => {}, isUrgent: () => false, onLateAnswer });
    const pending = link.callWithin(5_000, "inspect", "lock", "m");
    const failed = expect(pending).rejects.toThrow("did not answer within 5000 ms");
    await time.advance(5_000);
    await failed;
    expect(link.isLate).toBe(true);
    expect(link.hasCalls).toBe(false);
    channel.port2.postMessage([{ type: "answer", id: 2, value: "late" }] satisfies FromThread[]);
    await expect.poll(() => !link.isLate).toBe(true);
    expect(onLateAnswer).toHaveBeenCalledWith("late");
    expect(time.alarms).toBe(0);
  });

  it("counts an answer that waits in the port when the time of its call is over", async () => {
    answer(["inspect"]);
    const link = linked();
    await link.start();
    let fire = (): void => {};
    time.timers.after = (_, task) => {
      fire = task;
      return { cancel: () => {}, keepAlive: () => {} };
    };
    const pending = link.callWithin(5_000, "inspect", "lock", "m");
    channel.port2.postMessage([{ type: "answer", id: 2, value: null }] satisfies FromThread[]);
    fire();
    expect(await pending).toBeNull();
  });

  it("notices a thread that hangs, also when all calls have given up", async () => {
    const link = linked();
    channel.port2.once("message", () => {
      channel.port2.postMessage([{ type: "answer", id: 1, value: null }] satisfies FromThread[]);
    });
    await link.start();
    link.callWithin(5_000, "inspect", "lock", "m").catch(() => {});
    await time.advance(2 * SILENCE_MS);
    expect(thread.onSilence).toHaveBeenCalledOnce();
    expect(time.alarms).toBe(0);
  });

  it("keeps the process alive until it knows why the port of a call has closed", async () => {
    answer(["inspect"]);
    const link = linked();
    await link.start();
    const { answer: pending } = link.call("inspect", "lock", "m");
    const failed = expect(pending).rejects.toThrow("has ended (its port was closed)");
    channel.port2.close();
    await expect.poll(() => time.keepsAlive).toBe(true);
    await time.advance(NEWS_MS);
    await failed;
  });

  it.each(["its event loop", "a look"])("counts what %s has received", async (receiver) => {
    const link = linked();
    const messages = Array<FromThread>(200_000).fill({ type: "answer", id: -1, value: null });
    backlog.onSent(messages.length);
    expect(backlog.isLong).toBe(true);
    channel.port2.postMessage(messages);
    if (receiver === "a look") link.catchUp();
    else await expect.poll(() => !backlog.isLong).toBe(true);
    expect(backlog.isLong).toBe(false);
  });

  it("fails all calls once the store has failed", async () => {
    answer(["inspect"]);
    const link = linked();
    await link.start();
    const { answer: pending } = link.call("inspect", "lock", "m");
    const error = { name: "RangeError", message: "x", stack: undefined, fields: {}, cause: null };
    channel.port2.postMessage([{ type: "failed", error }] satisfies FromThread[]);
    await expect(pending).rejects.toThrow("The store has failed in its thread (x)");
    await expect(link.call("now").answer).rejects.toThrow("connect again");
    expect(link.hasEnded).toBe(true);
  });
});
