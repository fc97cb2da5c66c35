/** One thread for all stores of a process: how it starts, and how far a failure reaches. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/api/connect.js";
import { type FaultProxy, startProxy } from "../faults/proxy.js";
import { Stopwatch } from "../fixtures/stopwatch.js";
import { type RedisServer, startRedis } from "../servers/redis.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-thread-process-"));
let server: RedisServer;
let proxy: FaultProxy;
beforeAll(async () => {
  server = await startRedis();
  proxy = await startProxy({ targetPort: server.port });
});
afterAll(async () => {
  await proxy?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** For the messages between the process and its thread. */
const SLACK_MS = 600;

interface Outcome {
  readonly code: number | null;
  /** The lines of JSON that it wrote. */
  readonly notes: readonly unknown[];
  readonly output: string;
}

/** Runs `node`, for 90 s at most. */
function node(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const options = {
    timeout: 90_000,
    killSignal: "SIGKILL",
    env: { ...process.env, ...env },
  } as const;
  return new Promise((resolve) => {
    const child = execFile(process.execPath, args, options, (_, stdout, stderr) => {
      const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
      const notes = lines.map((line) => JSON.parse(line));
      resolve({ code: child.exitCode, notes, output: stdout + stderr });
    });
  });
}

const built = new URL("../../dist/index.js", import.meta.url).href;
let files = 0;

/** A program that takes a lock through a thread, and prints that or its error. */
function program(): string {
  const url = pathToFileURL(join(folder, `${++files}.db`)).href;
  return `
    import { connect } from ${JSON.stringify(built)};
    try {
      const locks = await connect(${JSON.stringify(url)}, { thread: true });
      const token = await locks.mutex("m").run(({ token }) => String(token));
      await locks.close();
      console.log(JSON.stringify({ token }));
    } catch ({ name, message }) {
      console.log(JSON.stringify({ name, message }));
    }
  `;
}

function file(name: string, code: string): string {
  const path = join(folder, name);
  writeFileSync(path, code);
  return path;
}

const taken = { token: expect.stringMatching(/^\d+$/) };

describe.concurrent("a thread starts", () => {
  it.each([
    ["in a program given as text", ["--input-type=module"]],
    [
      "with flags that only a process can have",
      ["--input-type=module", "--max-old-space-size=200"],
    ],
    ["where a module is preloaded", ["--input-type=module", "--import", "data:text/javascript,"]],
  ])("%s", async (_, flags) => {
    const { notes, output } = await node([...flags, "-e", program()]);
    expect(notes, output).toEqual([taken]);
  });

  it("in a program given as text by NODE_OPTIONS", async () => {
    const env = { NODE_OPTIONS: "--input-type=module" };
    const { notes, output } = await node(["-e", program()], env);
    expect(notes, output).toEqual([taken]);
  });
});

describe.concurrent("a thread that cannot start says what to do", () => {
  it("under the permission model", async () => {
    const flags = process.allowedNodeEnvironmentFlags;
    const flag = flags.has("--permission") ? "--permission" : "--experimental-permission";
    const main = file("permission.mjs", program());
    const { notes, output } = await node([flag, "--allow-fs-read=*", main]);
    const message = expect.stringContaining("--allow-worker");
    expect(notes, output).toEqual([{ name: "UnsupportedError", message }]);
  });

  it("where a preloaded module opens a thread, and does so in the thread, too", async () => {
    const preload = file("preload.mjs", program());
    const { code, output } = await node(["--import", pathToFileURL(preload).href, "-e", "0"]);
    expect(output).toContain("Connect only if isMainThread is true");
    expect(code).toBe(0);
  });

  it("where a preloaded module never ends there", async () => {
    const stuck = `
      import { isMainThread } from "node:worker_threads";
      for (;!isMainThread;);
    `;
    const preload = pathToFileURL(file("stuck.mjs", stuck)).href;
    const main = file("stuck-main.mjs", program());
    const { notes, output } = await node(["--import", preload, main]);
    const message = expect.stringMatching(/did not start within 10000 ms.*--import/);
    expect(notes, output).toEqual([{ name: "StoreError", message }]);
  });
});

describe.concurrent("the stores of one process", () => {
  let trials = 0;
  function trial(verb: string, ports: readonly number[]) {
    trials += 1;
    const urls = ports.map((port, at) => `redis://127.0.0.1:${port}?namespace=p${trials}-${at}`);
    const hook = fileURLToPath(new URL("./hook.cjs", import.meta.url));
    const main = fileURLToPath(new URL("./stores.mjs", import.meta.url));
    return { urls, run: () => node(["--require", hook, main, verb, ...urls]) };
  }

  it("share a thread, which ends with the last of them", async () => {
    const { port } = server;
    const { code, notes, output } = await trial("share", [port, port, port]).run();
    const seen = {
      states: ["released", "held", "held"],
      isAnswered: true,
      openThreads: 1,
      left: 0,
      threads: 2,
    };
    expect(notes, output).toEqual([seen]);
    expect(code).toBe(0);
  });

  it("do not lose their leases where one of them fails, whose leases are lost first", async () => {
    const { urls, run } = trial("break", [server.port, proxy.port]);
    const { code, notes, output } = await run();
    const lost = { code: "HF_LEASE_LOST", reason: "session_ended" };
    const detail = "the store failed in its thread: out of range";
    const call = { code: "HF_STORE", retryable: false };
    expect(notes, output).toMatchObject([
      { lost: { ...lost, detail }, call, state: "held", threads: 1, exits: 0 },
      { isOpen: true, threads: 1 },
    ]);
    expect((notes[0] as { call: Error }).call.message).toContain("has failed in its thread");
    expect(code).toBe(0);
    await using locks = await connect(urls[0] ?? "");
    expect(await locks.mutex("m").tryAcquire()).not.toBeNull();
  });

  it("keep their time limits when the thread hangs, and another one takes its place", async () => {
    const stopwatch = new Stopwatch();
    const { code, notes, output } = await trial("hang", [server.port]).run();
    const [seen] = notes as { releaseMs: number; lookMs: number; closeMs: number }[];
    expect(seen, output).toMatchObject({ isOpen: true, threads: 2 });
    // docs/options.md
    expect(seen?.releaseMs).toBeLessThan(stopwatch.limitMs(5_000 + SLACK_MS));
    expect(seen?.lookMs).toBeLessThan(stopwatch.limitMs(6_000 + SLACK_MS));
    expect(seen?.closeMs).toBeLessThan(stopwatch.limitMs(8_000 + SLACK_MS));
    expect(code).toBe(0);
  });

  it.each(["die", "fatal"])("hear that their thread has ended: %s", async (verb) => {
    const { code, notes, output } = await trial(verb, [server.port, proxy.port]).run();
    const why = verb === "die" ? "exit code 7" : "a fault of unknown origin";
    const call = { code: "HF_STORE", retryable: false, message: expect.stringContaining(why) };
    expect(notes, output).toMatchObject([{ calls: [call, call], states: ["held", "held"] }]);
    expect(code).toBe(0);
  });
});
