import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { describe, expect, it } from "vitest";
import { waitUntil } from "../servers/wait-until.js";
import { isRunning, type Running, Workshop } from "./command-line.js";

/**
 * A command with a child process; both can ignore SIGTERM. It writes both process ids to `pids`.
 */
const FAMILY = "echo $$ >> pids; sh -c 'echo $$ >> pids; sleep 60' & sleep 60; wait";
const STUBBORN = `trap '' TERM; ${FAMILY}`;

async function family(shop: Workshop): Promise<number[]> {
  return (await shop.lines("pids", 2)).map(Number);
}

async function untilAllEnded(pids: readonly number[]): Promise<void> {
  await waitUntil(() => !pids.some(isRunning), { what: "the whole process group has ended" });
}

describe("a signal", () => {
  it.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s ends a waiting run, and the command is not started",
    async (signal) => {
      await using shop = new Workshop();
      const holder = await shop.hold("x");
      const waiter = shop.start(["run", "-v", "x", "--", "touch", "ran"]);
      await waiter.shows("waiting");
      waiter.kill(signal);
      const { code } = await waiter.result;
      expect(code).toBe({ SIGTERM: 143, SIGINT: 130, SIGHUP: 129 }[signal]);
      holder.kill("SIGTERM");
      await holder.result;
      expect((await shop.run(["show", "x"])).stdout).toBe(`x is free in ${shop.store}\n`);
      expect(shop.read("ran")).toBe("");
    },
  );

  it.each(["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT"] as const)(
    "%s reaches the command",
    async (signal) => {
      await using shop = new Workshop();
      const name = signal.slice(3);
      const trap = `trap 'echo got ${name}; exit 5' ${name}`;
      const line = `${trap}; echo ready; while :; do sleep 0.05; done`;
      const running = shop.start(["run", "x", "-c", line]);
      await running.shows("ready");
      running.kill(signal);
      expect(await running.result).toMatchObject({ code: 5, stdout: `ready\ngot ${name}\n` });
    },
  );

  it("SIGTERM reaches grandchildren, and the lock is held until they have ended", async () => {
    await using shop = new Workshop();
    const slow = "trap 'sleep 0.4; date >> late; exit' TERM; echo up; while :; do sleep 0.05; done";
    const line = `sh -c "${slow}" & sleep 60`;
    const running = shop.start(["run", "x", "-c", line]);
    await running.shows("up");
    const waiter = shop.start(["run", "x", "-c", "cat late"]);
    running.kill("SIGTERM");
    expect((await running.result).code).toBe(143);
    expect((await waiter.result).stdout).not.toBe("");
  });
});

describe("a command that ignores the signal to end", () => {
  it.each([
    ["run", "SIGTERM"],
    ["run", "SIGINT"],
    ["run", "SIGQUIT"],
    ["once", "SIGTERM"],
    ["elect", "SIGTERM"],
  ] as const)("under `%s` gets SIGKILL when the grace after %s is over", async (verb, signal) => {
    await using shop = new Workshop();
    const keep = verb === "once" ? ["--keep", "1h"] : [];
    const line = `trap '' TERM INT QUIT; ${FAMILY}`;
    const running = shop.start([verb, "--grace", "300ms", ...keep, "x", "-c", line]);
    const pids = await family(shop);
    running.kill(signal);
    expect((await running.result).code).toBe(137);
    expect(pids.filter(isRunning)).toEqual([]);
    expect((await shop.run(["show", "x"])).stdout).toBe(`x is free in ${shop.store}\n`);
  });

  it("holds the lock until it has ended, also after several signals", async () => {
    await using shop = new Workshop();
    const running = shop.start(["run", "--grace", "1s", "x", "-c", STUBBORN]);
    const pids = await family(shop);
    const waiter = shop.start(["run", "x", "--", "sh", "-c", aliveAmong(pids)]);
    const startMs = performance.now();
    running.kill("SIGTERM");
    const repeat = setInterval(() => running.kill("SIGTERM"), 200);
    expect((await running.result).code).toBe(137);
    clearInterval(repeat);
    expect(performance.now() - startMs).toBeGreaterThan(800);
    expect((await waiter.result).stdout).toBe("none\n");
  });

  it("a stopped command gets the signal", async () => {
    await using shop = new Workshop();
    const line = "trap 'echo heard; exit 3' TERM; echo $$ > pid; kill -STOP $$; sleep 60 & wait";
    const running = shop.start(["run", "--grace", "10s", "x", "-c", line]);
    const [pid] = await shop.lines("pid", 1);
    await waitUntil(() => / T /.test(readFileSync(`/proc/${pid}/stat`, "latin1")), {
      what: "the command is stopped",
    });
    running.kill("SIGTERM");
    expect(await running.result).toMatchObject({ code: 3, stdout: "heard\n" });
  });
});

describe("when the lease is lost", () => {
  it("by revoke: TERM, KILL after the grace, exit code 79, no grandchild left", async () => {
    await using shop = new Workshop();
    const running = shop.start(["run", "--ttl", "3s", "--grace", "500ms", "x", "-c", STUBBORN]);
    const pids = await family(shop);
    const { token } = JSON.parse((await shop.run(["show", "--json", "x"])).stdout).holders[0];
    const revoked = await shop.run(["revoke", "x", "--token", token, "--reason", "stuck host"]);
    expect(revoked.code).toBe(0);
    const { code, stderr } = await running.result;
    expect(code).toBe(79);
    expect(stderr).toContain('lock "x" is lost');
    await untilAllEnded(pids);
  });

  it("without renewals: the process group has ended before the lock is granted again", async () => {
    await using shop = new Workshop();
    const beat = `trap '' TERM; while :; do date +%s%N >> beats; sleep 0.02; done`;
    const running = shop.start(["run", "--ttl", "3s", "--grace", "1s", "x", "-c", beat]);
    await shop.lines("beats", 5);
    await using _blocker = blockStore(shop);
    expect((await running.result).code).toBe(79);
    await _blocker[Symbol.asyncDispose]();
    const next = await shop.run(["run", "x", "--", "date", "+%s%N"]);
    const beats = await shop.lines("beats", 5);
    expect(BigInt(next.stdout.trim())).toBeGreaterThan(BigInt(beats.at(-1) ?? "0"));
  });
});

describe("the reaper", () => {
  it("ends the process group when the command line gets SIGKILL", async () => {
    await using shop = new Workshop();
    const running = shop.start(["run", "--ttl", "3s", "--grace", "1s", "x", "-c", STUBBORN]);
    const pids = await family(shop);
    const waiter = shop.start(["run", "x", "--", "sh", "-c", aliveAmong(pids)]);
    running.kill("SIGKILL");
    // The next holder, granted after the ttl, must find none of them alive.
    expect(await waiter.result).toMatchObject({ code: 0, stdout: "none\n" });
    await untilAllEnded(pids);
  });

  it("ends a command whose first step is to kill the command line", async () => {
    await using shop = new Workshop();
    const line = "trap '' TERM; echo $$ > pid; kill -9 $PPID; while :; do sleep 0.1; done";
    await shop.run(["run", "--ttl", "3s", "--grace", "500ms", "x", "-c", line]);
    const next = await shop.run(["run", "-w", "20s", "x", "--", "cat", "pid"]);
    expect(next.code).toBe(0);
    expect(isRunning(Number(next.stdout))).toBe(false);
  });

  it("ends the process group when the command line is stopped past its ttl", async () => {
    await using shop = new Workshop();
    const running = shop.start(["run", "--ttl", "3s", "--grace", "1s", "x", "-c", STUBBORN]);
    const pids = await family(shop);
    await waitUntil(() => reaperOf(running) > 0, { what: "the reaper has its timer" });
    running.kill("SIGSTOP");
    const next = await shop.run(["run", "x", "--", "sh", "-c", aliveAmong(pids)]);
    expect(next.stdout).toBe("none\n");
    running.kill("SIGCONT");
    expect((await running.result).code).toBe(79);
  });

  it("leaves no process after an orderly end", async () => {
    await using shop = new Workshop();
    const running = shop.start(["run", "--ttl", "2s", "x", "--", "sleep", "0.6"]);
    await waitUntil(() => reaperOf(running) > 0, { what: "the reaper has its timer" });
    const reaper = reaperOf(running);
    expect((await running.result).code).toBe(0);
    await untilAllEnded([reaper, ...childrenOf(reaper)]);
  });
});

function aliveAmong(pids: readonly number[]): string {
  // A zombie does not count.
  return `for pid in ${pids.join(" ")}; do
    case $(sed 's/.*) //; s/ .*//' /proc/$pid/stat 2>/dev/null) in ''|Z) ;; *) echo $pid ;; esac
  done; echo none`;
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text.trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** The reaper of a running command when it has its timer; otherwise 0. */
function reaperOf({ pid }: Running): number {
  const isReaper = (child: number): boolean =>
    readFileSync(`/proc/${child}/cmdline`, "utf8").includes("holdfast-reaper");
  return childrenOf(pid).find((child) => isReaper(child) && childrenOf(child).length > 0) ?? 0;
}

/** Keeps the file of the store locked, so that no renewal succeeds. */
function blockStore(shop: Workshop): AsyncDisposable {
  const libsql = createRequire(import.meta.url).resolve("libsql");
  const program = `
    const database = new (require(${JSON.stringify(libsql)}))(process.argv[1]);
    database.exec("PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE");
    setInterval(() => {}, 1000);
  `;
  const blocker = shop.startProgram(process.execPath, ["-e", program, shop.path("locks.db")]);
  return {
    async [Symbol.asyncDispose]() {
      blocker.kill("SIGKILL");
      await blocker.result;
    },
  };
}
