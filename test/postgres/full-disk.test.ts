/** A server whose disk is full: a small file system in memory, which only root can mount. */

import { execFile } from "node:child_process";
import { mkdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Holdfast } from "../../src/api/holdfast.js";
import { isFull } from "../fixtures/depth.js";
import { onFreePorts } from "../servers/free-port.js";
import { giveToUser, PostgresServer } from "../servers/postgres.js";
import { waitUntil } from "../servers/wait-until.js";
import { Trial } from "./trial.js";

const run = promisify(execFile);

/** A server on a file system of its own. */
async function startOnSmallDisk(): Promise<PostgresServer> {
  return await onFreePorts(1, async ([port = 0]) => {
    const server = new PostgresServer(port);
    await mkdir(server.dataDir);
    await run("mount", ["-t", "tmpfs", "-o", "size=120m", "tmpfs", server.dataDir]);
    giveToUser(server.dataDir);
    try {
      await server.initialise();
      await server.start();
      return server;
    } catch (error) {
      await close(server);
      throw error;
    }
  });
}

async function close(server: PostgresServer): Promise<void> {
  await server.kill();
  await run("umount", [server.dataDir]);
  await server.close();
}

/** Acquires new names, which need new pages, until the server refuses. */
async function acquireUntilRefused(locks: Holdfast): Promise<unknown> {
  for (let round = 0; round < 10_000; round += 1) {
    const names = Array.from({ length: 100 }, (_, index) => `${round}-${index}`);
    const results = await Promise.allSettled(
      names.map((name) => locks.mutex(name).acquire({ ttlMs: 60_000, storeTimeoutMs: 1_000 })),
    );
    const refused = results.find((result) => result.status === "rejected");
    if (refused) return refused.reason;
  }
  return null;
}

test("a full disk refuses new names, and costs no exclusion", async (context) => {
  if (!isFull) context.skip("only in the full run");
  if (process.getuid?.() !== 0) context.skip("only root can mount a small file system");
  const server = await startOnSmallDisk();
  const trial = new Trial();
  try {
    const [a, b] = [await trial.open(server.url), await trial.open(server.url)];
    const lease = await a.mutex("before").acquire({ ttlMs: 60_000 });
    const { bavail, bsize } = await statfs(server.dataDir);
    const filler = join(server.dataDir, "filler");
    await writeFile(filler, Buffer.alloc(Math.max(0, bavail * bsize - 64 * 1024)));
    const refused = await acquireUntilRefused(b);
    expect(refused).toMatchObject({ code: "HF_STORE" });
    expect(String((refused as Error).message)).toMatch(/disk of the server is full|53100/);
    await rm(filler);
    if (!server.running) await server.start();
    await waitUntil(async () => (await a.mutex("free again").tryAcquire()) !== null, {
      what: "the server grants again",
    });
    expect(await b.mutex("before").tryAcquire()).toBeNull();
    await lease.renew();
    expect(await lease.release()).toBe(true);
  } finally {
    await trial.close();
    await close(server);
  }
});
