/**
 * A route handler of Next, built for production by both of its bundlers. Only in the full run,
 * which downloads Next: it has 340 MB.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { onFreePorts } from "../servers/free-port.js";
import { type RedisServer, startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";
import { PackedProject } from "./packed-project.js";

const MINUTE_MS = 60_000;
const NEXT = ["next@16", "react@19", "react-dom@19"];

const LAYOUT = `
export default function Layout({ children }) {
  return <html><body>{children}</body></html>;
}
`;

const ROUTE = `
import { connect, Holdfast } from "holdfast";
import { memoryStore } from "holdfast/memory";

export const dynamic = "force-dynamic";
const inMemory = new Holdfast(memoryStore());

async function locked(open) {
  try {
    const locks = await open();
    return await locks.mutex("a").run(async (lease) => typeof lease.token);
  } catch (error) {
    return error.message;
  }
}

export async function GET() {
  return Response.json({
    memory: await locked(() => inMemory),
    redis: await locked(() => connect(process.env.REDIS_URL)),
    postgres: await locked(() => connect("postgres://127.0.0.1:1/nothing")),
  });
}
`;

describe.skipIf(!isFull).each([
  { clients: [], redis: /needs ioredis 5 or 6/ },
  { clients: ["ioredis", "redis"], redis: /^bigint$/ },
])("with the clients $clients", ({ clients, redis }) => {
  const project = new PackedProject();
  let next: string;
  let server: RedisServer;

  beforeAll(async () => {
    server = await startRedis();
    project.install();
    next = join(project.folder, "node_modules/next/dist/bin/next");
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund"];
    project.run("npm", ["install", ...quiet, ...NEXT, ...clients]);
    project.write("app/layout.js", LAYOUT);
    project.write("app/lock/route.js", ROUTE);
  }, 5 * MINUTE_MS);

  afterAll(async () => {
    await server.close();
    project.remove();
  });

  async function answer(): Promise<unknown> {
    const env = { ...process.env, NODE_ENV: "production" as const, REDIS_URL: server.url };
    return await onFreePorts(1, async ([port]) => {
      const args = [next, "start", "--port", `${port}`, "--hostname", "127.0.0.1"];
      const running = spawn(process.execPath, args, { cwd: project.folder, env, stdio: "ignore" });
      const ended = once(running, "exit");
      try {
        const ask = () => fetch(`http://127.0.0.1:${port}/lock`);
        await waitUntil(async () => (await ask()).ok, { what: "Next answers" });
        return await (await ask()).json();
      } finally {
        running.kill("SIGKILL");
        await ended;
      }
    });
  }

  it.each(["--turbopack", "--webpack"])(
    "next build %s",
    async (bundler) => {
      const env = ["NEXT_TELEMETRY_DISABLED=1", "NODE_ENV=production"];
      project.run("env", [...env, process.execPath, next, "build", bundler]);
      expect(await answer()).toEqual({
        memory: "bigint",
        redis: expect.stringMatching(redis),
        postgres: expect.stringMatching(/needs pg 8.7 or later, or postgres 3/),
      });
    },
    10 * MINUTE_MS,
  );
});
