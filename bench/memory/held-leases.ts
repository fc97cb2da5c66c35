import { monitorEventLoopDelay } from "node:perf_hooks";
import { Holdfast, type Lease } from "holdfast";
import { memoryStore } from "holdfast/memory";
import type { Question } from "../contest.js";
import { heapBytes, measured } from "../costs.js";

const PERIODS = 3;

export const heldLeases: Question = {
  store: "memory",
  name: "held-leases",
  title: "100,000 leases held for three renewal periods",
  about:
    "A client that holds very many leases keeps all of them, in few calls, without " +
    "blocking its host.",
  unit: "leases/call",
  better: "higher",
  rounds: 1,
  startsFresh: true,
  takesLong: true,
  async contestants(isQuick) {
    const count = isQuick ? 20_000 : 100_000;
    const ttlMs = isQuick ? 3_000 : 15_000;
    return [
      {
        name: "holdfast",
        role: "holdfast",
        round: async () => {
          const store = memoryStore();
          const calls: number[] = [];
          const renew = store.renew.bind(store);
          store.renew = (grants) => {
            calls.push(grants.length);
            return renew(grants);
          };
          const locks = new Holdfast(store, { ttlMs });
          const heapBefore = heapBytes();
          const leases: Lease[] = [];
          for (let index = 0; index < count; index += 1) {
            leases.push(await locks.mutex(`lease:${index}`).acquire());
          }
          const heapPerLease = (heapBytes() - heapBefore) / count;
          const delay = monitorEventLoopDelay({ resolution: 1 });
          delay.enable();
          const holdMs = (PERIODS * ttlMs) / 3 + ttlMs / 6;
          const { more } = await measured(
            null,
            count * PERIODS,
            () => new Promise((resume) => setTimeout(resume, holdMs)),
            "renewal",
          );
          delay.disable();
          const lost = leases.filter((lease) => lease.state !== "held").length;
          await locks.close();
          const renewed = calls.reduce((sum, size) => sum + size, 0);
          return {
            value: renewed / calls.length,
            more: {
              lost,
              calls: calls.length,
              "renewals/lease": renewed / count,
              "loop delay p99 ms": delay.percentile(99) / 1e6,
              "heap bytes/lease": heapPerLease,
              ...more,
            },
          };
        },
      },
    ];
  },
  goals(of) {
    const { median, more } = of("holdfast");
    const lost = more.lost ?? Number.NaN;
    const delayMs = more["loop delay p99 ms"] ?? Number.NaN;
    return [
      { text: "leases lost", value: lost, isMet: lost === 0 },
      {
        text: "at least 500 leases per renewal call",
        value: median,
        isMet: median >= 500,
        line: 500,
      },
      { text: "event-loop delay p99 under 50 ms", value: delayMs, isMet: delayMs < 50 },
    ];
  },
};
