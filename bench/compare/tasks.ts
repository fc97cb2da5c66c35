import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { startPostgres } from "../../test/servers/postgres.js";
import { startRedis } from "../../test/servers/redis.js";
import type { Build } from "./build.js";

/** A piece of work that is timed on each build; `run` does `pairs` pairs of acquire and release. */
export interface Task {
  readonly title: string;
  readonly pairs: number;
  open(build: Build): Promise<{ run(): Promise<void>; close(): Promise<void> }>;
}

type Fairness = "bounded" | "strict";

/** The tasks of all stores, and the end of what they share. */
export async function startTasks(): Promise<{ tasks: readonly Task[]; stop(): Promise<void> }> {
  const server = await startRedis();
  const postgres = await startPostgres({ settings: { synchronous_commit: "off" } });
  const folder = mkdtempSync(join(tmpdir(), "holdfast-compare-"));
  // The builds may have different layouts, so each has a file and a database of its own.
  const fileUrl = async ({ title }: Build) => `file:${join(folder, title)}`;
  const postgresUrl = async ({ title }: Build) => {
    const found = await postgres.ask("select 1 from pg_database where datname = $1", [title]);
    if (found.length === 0) await postgres.ask(`create database ${title}`);
    const url = new URL(postgres.url);
    url.pathname = title;
    return url.href;
  };
  const tasks = [
    memoryTask("memory: one at a time", 20_000, 1, "bounded"),
    memoryTask("memory: one at a time, strict", 20_000, 1, "strict"),
    memoryTask("memory: 100 callers, one name", 10_000, 100, "bounded"),
    redisTask("redis: one at a time", server.port, { pairs: 400, callers: 1, names: 1 }),
    redisTask("redis: one at a time, strict", server.port, {
      pairs: 400,
      callers: 1,
      names: 1,
      fairness: "strict",
    }),
    redisTask("redis: 200 names at once", server.port, { pairs: 4_000, callers: 200, names: 200 }),
    redisTask("redis: 20 callers, one name", server.port, { pairs: 2_000, callers: 20, names: 1 }),
    redisTask("redis: 20 callers, one name, strict", server.port, {
      pairs: 800,
      callers: 20,
      names: 1,
      fairness: "strict",
    }),
    urlTask("file: one at a time", 2_000, 1, fileUrl),
    urlTask("file: 128 names at once", 2_560, 128, fileUrl),
    urlTask("postgres: one at a time", 200, 1, postgresUrl),
    urlTask("postgres: 100 names at once", 2_000, 100, postgresUrl),
  ];
  const stop = async () => {
    rmSync(folder, { recursive: true, force: true });
    await Promise.all([server.close(), postgres.close()]);
  };
  return { tasks, stop };
}

/** Callers with a name each. */
function urlTask(
  title: string,
  pairs: number,
  callers: number,
  urlOf: (build: Build) => Promise<string>,
): Task {
  return {
    title,
    pairs,
    open: async (build) => {
      const locks = await build.connect(await urlOf(build));
      const acquire = (caller: number) => locks.mutex(`${title} ${caller}`).acquire();
      return { run: () => inTurns(pairs, callers, acquire), close: () => locks.close() };
    },
  };
}

function memoryTask(title: string, pairs: number, callers: number, fairness: Fairness): Task {
  return {
    title,
    pairs,
    open: async ({ open, memoryStore }) => {
      const locks = open(memoryStore());
      const acquire = () => locks.mutex("a", { fairness }).acquire();
      return { run: () => inTurns(pairs, callers, acquire), close: () => locks.close() };
    },
  };
}

function redisTask(
  title: string,
  port: number,
  terms: { pairs: number; callers: number; names: number; fairness?: Fairness },
): Task {
  const { pairs, callers, names, fairness = "bounded" } = terms;
  return {
    title,
    pairs,
    open: async (build) => {
      const client = new Redis(port);
      const locks = build.open(build.redisStore({ client, namespace: build.title }));
      const mutexes = Array.from({ length: names }, (_, at) => {
        return locks.mutex(`${title} ${at}`, { fairness });
      });
      const acquire = (caller: number) => mutexes[caller % names]?.acquire();
      return {
        run: () => inTurns(pairs, callers, acquire),
        close: async () => {
          await locks.close();
          client.disconnect();
        },
      };
    },
  };
}

async function inTurns(
  pairs: number,
  callers: number,
  acquire: (caller: number) => Promise<{ release(): Promise<unknown> }> | undefined,
): Promise<void> {
  const each = pairs / callers;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let pair = 0; pair < each; pair += 1) await (await acquire(caller))?.release();
    }),
  );
}
