import { pathToFileURL } from "node:url";
import type { connect, Holdfast } from "holdfast";
import type * as memory from "holdfast/memory";
import type * as redis from "holdfast/redis";
import type { Store } from "holdfast/store";

/** The parts of one build of Holdfast that a comparison uses. */
export interface Build {
  readonly title: string;
  readonly open: (store: Store) => Holdfast;
  readonly connect: typeof connect;
  readonly memoryStore: typeof memory.memoryStore;
  readonly redisStore: typeof redis.redisStore;
}

/** Loads the build in `folder`, beside others in the same process: they share nothing. */
export async function loadBuild(title: string, folder: string): Promise<Build> {
  const load = (file: string) => import(pathToFileURL(`${folder}/dist/${file}`).href);
  const [front, memory, redis] = await Promise.all([
    load("index.js"),
    load("stores/memory/index.js"),
    load("stores/redis/index.js"),
  ]);
  const open = (store: Store): Holdfast => new front.Holdfast(store);
  const { memoryStore } = memory;
  const { redisStore } = redis;
  return { title, open, connect: front.connect, memoryStore, redisStore };
}
