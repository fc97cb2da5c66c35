import type { Behaviour } from "../behaviour.js";
import { needLeftovers } from "../needs.js";
import { until } from "../patience.js";

export const nothingLeftForLong: Behaviour = {
  title: "what ended otherwise leaves nothing behind for longer than its ttl",
  needs: needLeftovers,
  async run(context) {
    const [a, b] = [await context.open(), await context.open()];
    const { shortMs } = context.ttl;
    const options = { ttlMs: shortMs, storeTimeoutMs: shortMs };
    for (let round = 0; round < 10; round += 1) {
      const controller = new AbortController();
      const acquiring = a.mutex("aborted").acquire({ ...options, signal: controller.signal });
      controller.abort(new Error("gave up"));
      await acquiring.then(
        (lease) => lease.release(),
        () => undefined,
      );
    }
    const revoked = await a.mutex("revoked").acquire(options);
    await b.revoke("revoked", { token: revoked.token, reason: "test" });
    const lost = await a.mutex("lost").acquire({ ...options, renew: false });
    if (context.traits.marks) await a.once("done", () => 1, { ...options, keepMs: shortMs });
    await until("the lease is over", () => lost.state === "lost");
    await Promise.all([a.close(), b.close()]);
    await until("nothing is left", async () => (await context.leftovers()).length === 0);
  },
};
