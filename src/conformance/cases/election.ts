import assert from "node:assert/strict";
import type { Leader } from "../../locks/election.js";
import type { Behaviour } from "../needs.js";
import { needProcesses } from "../needs.js";
import { isSettled, PATIENCE_MS, PROMPT_MS, until, within } from "../patience.js";

export const election: readonly Behaviour[] = [
  {
    title: "a leader leads alone, resigns at the end and rethrows the error of its body",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      let end: (value: string) => void = () => {};
      const ended = new Promise<string>((resume) => (end = resume));
      const leading = a.election("seat").lead(() => ended);
      const leader = await until("a leader is elected", () => b.election("seat").leader());
      const waiting = b.election("seat").campaign();
      assert.equal(await isSettled(waiting, 50), false, "the second candidate waits");
      end("led");
      assert.equal(await leading, "led");
      const lease = await within(PROMPT_MS, "the next is elected", waiting);
      assert.ok(lease.token > leader.token);
      await lease.release();

      const failure = new Error("the body failed");
      const failing = a.election("seat").lead(() => Promise.reject(failure));
      await assert.rejects(failing, (error) => error === failure);
      await until("there is no leader", async () => (await b.election("seat").leader()) === null);
    },
  },
  {
    title: "a leader that loses its office campaigns again, and its bodies never overlap",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const seat = a.election("seat");
      const tokens: bigint[] = [];
      let inside = 0;
      const leading = seat.lead(async ({ token, signal }) => {
        inside += 1;
        assert.equal(inside, 1, "bodies do not overlap");
        tokens.push(token);
        if (tokens.length < 3) {
          const lost = new Promise((resume) => signal.addEventListener("abort", resume));
          assert.equal(await b.revoke("seat", { token, reason: "test" }, "election"), true);
          await lost;
          // The body ends a moment later; the next campaign has to wait for it.
          await new Promise((resume) => setTimeout(resume, 50));
        }
        inside -= 1;
        if (tokens.length === 2) throw new Error("stopped because the election was lost");
        return "led";
      });
      assert.equal(await within(PATIENCE_MS, "it leads in the end", leading), "led");
      assert.equal(tokens.length, 3);
      assert.ok(tokens.every((token, index) => index === 0 || token > (tokens[index - 1] ?? 0n)));
    },
  },
  {
    title: "an observer sees every leader once, in the order of their tokens",
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const controller = new AbortController();
      const seen: (Leader | null)[] = [];
      const observing = (async () => {
        const options = { everyMs: 10, signal: controller.signal };
        for await (const leader of b.election("seat").observe(options)) seen.push(leader);
      })();
      await until("the observer sees no leader", () => seen.length === 1);
      const tokens: bigint[] = [];
      for (let round = 0; round < 3; round += 1) {
        const lease = await a.election("seat").campaign({ meta: { round } });
        tokens.push(lease.token);
        await until("the observer sees the leader", () => seen.at(-1)?.token === lease.token);
        assert.equal(seen.at(-1)?.meta.round, round);
        await lease.release();
      }
      await until("the observer sees no leader", () => seen.at(-1) === null);
      controller.abort();
      await within(PROMPT_MS, "the observer ends", observing);
      const seenTokens = seen.flatMap((leader) => (leader ? [leader.token] : []));
      assert.deepEqual(seenTokens, tokens, "each once, in order");
    },
  },
  {
    title: "when the leader is killed, another leader is elected",
    needs: needProcesses,
    async run(context) {
      const [locks, child] = [await context.open(), await context.child()];
      const { renewedMs } = context.ttl;
      const seat = { kind: "election", name: "seat" } as const;
      const token = await child.call("acquire", seat, { ttlMs: renewedMs });
      const leading = locks.election("seat").lead((lease) => lease.token);
      await child.kill();
      const next = await within(2 * renewedMs + PROMPT_MS, "another leads", leading);
      assert.ok(next > token);
    },
  },
];
