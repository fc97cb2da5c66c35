import { fileURLToPath } from "node:url";
import type { Contestant, Question } from "../contest.js";
import { started } from "../started.js";
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
    const of = (name: string, role: Contestant["role"]): Contestant =>
      started(name, role, [PROGRAM, name, `${port}`]);
    return [
      of("holdfast", "holdfast"),
      of("raw SET NX PX + DEL", "floor"),
      ...PEERS.slice(isQuick ? -2 : 0).map((name) => of(name, "peer")),
    ];
  },
  goals: () => [],
  close: () => redis.stop(),
};
