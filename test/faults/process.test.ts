import { expect, it } from "vitest";
import { isAlive, isStopped } from "../servers/process-state.js";
import { startProcess } from "./process.js";

const module = new URL("./echo-process.mjs", import.meta.url);

interface Answer {
  readonly answered: number;
  readonly args: readonly string[];
}

const isAnswer = (message: Answer) => message.answered !== undefined;

it("exchanges messages, also with a paused process", async () => {
  await using child = startProcess(module, { args: ["a b"] });
  await child.send({ text: "one" });
  const first = await child.receive(isAnswer);
  expect(first).toEqual({ answered: 1, message: { text: "one" }, args: ["a b"] });
  expect(await child.receive()).toEqual({ ready: true });

  await child.pause();
  expect(isStopped(child.pid)).toBe(true);
  const sent = child.send({ text: "two" });
  child.resume();
  await sent;
  expect((await child.receive(isAnswer)).answered).toBe(2);
});

it("reports the exit code and the output of the process", async () => {
  await using child = startProcess(module);
  await child.receive();
  const answer = child.receive();
  await child.send({ fail: "no way" });
  await expect(answer).rejects.toThrow(/ended \(1\).*no way/s);
  await expect(child.receive()).rejects.toThrow("ended (1)");

  await using other = startProcess(module);
  await other.send({ exit: 7 });
  expect(await other.exited).toEqual({ code: 7, signal: null });
});

it("kills and stops a process, also a paused one", async () => {
  const children = [startProcess(module), startProcess(module), startProcess(module)] as const;
  await Promise.all(children.map((child) => child.receive()));
  const pids = children.map((child) => child.pid);
  const [killed, stopped, disposed] = children;
  await Promise.all([killed.pause(), stopped.pause(), disposed.pause()]);
  await killed.kill();
  expect(await killed.exited).toEqual({ code: null, signal: "SIGKILL" });
  expect(await stopped.stop()).toEqual({ code: null, signal: "SIGTERM" });
  await Promise.all(children.map((child) => child[Symbol.asyncDispose]()));
  expect(pids.filter(isAlive)).toEqual([]);
});
