import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";
import { isSettled, PROMPT_MS, until, within } from "../patience.js";

export const electionLead: Behaviour = {
  title: "a leader leads alone, resigns at the end and rethrows what its body throws",
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    let end: (value: string) => void = () => {};
    const leading = a.election("seat").lead(() => new Promise<string>((resume) => (end = resume)));
    const leader = await until("somebody leads", () => b.election("seat").leader());
    const waiting = b.election("seat").campaign();
    assert.equal(await isSettled(waiting, 50), false, "there is one leader");
    end("led");
    assert.equal(await leading, "led");
    const lease = await within(PROMPT_MS, "the next is elected", waiting);
    assert.ok(lease.token > leader.token);
    await lease.release();

    const failure = new Error("the body failed");
    const failing = a.election("seat").lead(() => Promise.reject(failure));
    await assert.rejects(failing, (error) => error === failure);
    await until("nobody leads", async () => (await b.election("seat").leader()) === null);
  },
};
