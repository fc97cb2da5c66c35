/**
 * A process that holds very many leases: it says when it has all of them, then "watch" starts its
 * figures, and "report" asks for them.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Holdfast, type Lease } from "holdfast";
import { redisStore } from "holdfast/redis";
import { Redis } from "ioredis";
import { heapBytes } from "../costs.js";
import { endWithParent } from "../forked.js";

export interface Order {
  readonly port: number;
  readonly prefix: string;
  readonly leases: number;
  /** Stores with a subscription each, which share one connection for their commands. */
  readonly clients: number;
  readonly ttlMs: number;
}

export interface Report {
  readonly lost: number;
  readonly heapBytes: number;
  readonly delayP99Ms: number;
  readonly cpuUs: number;
}

/** New clients open a connection each: they come in smaller groups. */
const AT_ONCE = { leases: 1_000, clients: 50 };
/** A crowd that connects may keep the server busy for longer than a program would wait. */
const PATIENCE_MS = 60_000;

endWithParent();
const order = JSON.parse(process.argv[2] ?? "{}") as Order;
const client = new Redis(order.port);
const clients = Array.from({ length: order.clients }, () => {
  return new Holdfast(redisStore({ client }), {
    ttlMs: order.ttlMs,
    storeTimeoutMs: PATIENCE_MS,
    waitMs: PATIENCE_MS,
  });
});
const heapBefore = heapBytes();
const leases: Lease[] = [];
const atOnce = order.clients > 1 ? AT_ONCE.clients : AT_ONCE.leases;
while (leases.length < order.leases) {
  const count = Math.min(atOnce, order.leases - leases.length);
  const acquiring = Array.from({ length: count }, (_, index) => {
    const number = leases.length + index;
    return (clients[number % clients.length] as Holdfast)
      .mutex(`${order.prefix}:${number}`)
      .acquire();
  });
  leases.push(...(await Promise.all(acquiring)));
}
const delay = monitorEventLoopDelay({ resolution: 1 });
let cpuBefore = process.cpuUsage();
process.on("message", (word) => {
  if (word === "watch") {
    cpuBefore = process.cpuUsage();
    delay.enable();
    return;
  }
  delay.disable();
  const { user, system } = process.cpuUsage(cpuBefore);
  const report: Report = {
    lost: leases.filter((lease) => lease.state !== "held" || lease.remainingMs() <= 0).length,
    heapBytes: heapBytes() - heapBefore,
    delayP99Ms: delay.percentile(99) / 1e6,
    cpuUs: user + system,
  };
  process.send?.(report);
});
process.send?.("held");
