import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Contestant, Question } from "../contest.js";
import { BenchRedis } from "./server.js";

const redis = new BenchRedis();
const PROGRAM = fileURLToPath(new URL("./first-lock.js", import.meta.url));
const PEERS = ["redlock 4", "redlock 5 beta", "redis-semaphore", "redlock-universal"];

export const startUp: Question = {
  store: "redis",
  name: "start-up",
  title: "a program that takes one lock, from its start to its end",
  about: "The price of one lock in a program that then ends: to load, to connect, to lock.",
  unit: "ms",
  better: "lower",
  rounds: 21,
  async contestants(isQuick) {
    const port = await redis.start();
    const started = (name: string, role: Contestant["role"]): Contestant => ({
      name,
      role,
      round: async () => {
        const startMs = performance.now();
        const child = spawn(process.execPath, [PROGRAM, name, `${port}`], { stdio: "ignore" });
        const [code] = await once(child, "exit");
        if (code !== 0) throw new Error(`it ended with ${code}`);
        return { value: performance.now() - startMs };
      },
    });
    return [
      started("holdfast", "holdfast"),
      started("raw SET NX PX + DEL", "floor"),
      ...PEERS.slice(isQuick ? -2 : 0).map((name) => started(name, "peer")),
    ];
  },
  goals: () => [],
  close: () => redis.stop(),
};
