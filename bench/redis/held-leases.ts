import { subscribe } from "node:diagnostics_channel";
import { channels, Holdfast, type Lease } from "holdfast";
import { redisStore } from "holdfast/redis";
import { Redis } from "ioredis";
import type { Question } from "../contest.js";
import { measured } from "../costs.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const PERIODS = 3;

export const heldLeases: Question = {
  store: "redis",
  name: "held-leases",
  title: "100,000 leases held for three renewal periods",
  about:
    "A client that holds very many leases keeps all of them, in few calls. Each renewal is " +
    "counted by its event, which is a part of the client's time.",
  unit: "leases/call",
  better: "higher",
  rounds: 1,
  startsFresh: true,
  takesLong: true,
  async contestants(isQuick) {
    const count = isQuick ? 20_000 : 100_000;
    const ttlMs = isQuick ? 6_000 : 30_000;
    const port = await redis.start();
    return [
      {
        name: "holdfast",
        role: "holdfast",
        round: async () => {
          const client = new Redis(port);
          const locks = new Holdfast(redisStore({ client }), { ttlMs });
          const leases: Lease[] = await Promise.all(
            Array.from({ length: count }, (_, index) => locks.mutex(`lease:${index}`).acquire()),
          );
          const callsBefore = await scriptCalls();
          const holdMs = (PERIODS * ttlMs) / 3 + ttlMs / 6;
          let renewals = 0;
          subscribe(channels.renew, () => {
            renewals += 1;
          });
          const { more } = await measured(
            redis,
            () => renewals,
            () => new Promise((resume) => setTimeout(resume, holdMs)),
            "renewal",
          );
          const calls = (await scriptCalls()) - callsBefore;
          const lost = leases.filter((lease) => lease.state !== "held").length;
          await locks.close();
          client.disconnect();
          return { value: renewals / calls, more: { lost, calls, renewals, ...more } };
        },
      },
    ];
  },
  goals(of) {
    const { median, more } = of("holdfast");
    const lost = more.lost ?? Number.NaN;
    return [
      { text: "leases lost", value: lost, isMet: lost === 0 },
      { text: "at least 500 leases per call", value: median, isMet: median >= 500 },
    ];
  },
  close: () => redis.stop(),
};

async function scriptCalls(): Promise<number> {
  const { cmdstat_evalsha: stats = "" } = await redis.server.info("commandstats");
  return Number(/calls=(\d+)/.exec(stats)?.[1]);
}
