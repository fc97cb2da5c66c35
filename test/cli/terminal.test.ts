import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { LAUNCHER } from "../../src/cli/launcher.js";
import { isRunning, MAIN, type Result, Workshop } from "./command-line.js";

/**
 * Runs a program in a pseudo-terminal, types some milliseconds after a text appears, and prints the
 * output.
 */
const TERMINAL = `
import json, os, pty, sys, time
steps, argv = json.loads(sys.argv[1]), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
seen = b""
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    while steps and steps[0][0].encode() in seen:
        _, text, *after = steps.pop(0)
        time.sleep(sum(after) / 1000)
        os.write(fd, text.encode())
_, status = os.waitpid(pid, 0)
sys.stdout.write(seen.decode().replace("\\r\\n", "\\n"))
sys.stdout.flush()
if os.WIFSIGNALED(status):
    os._exit(128 + os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
`;

const hasPython = spawnSync("python3", ["-c", "import pty"]).status === 0;

function inTerminal(
  shop: Workshop,
  steps: readonly (readonly [at: string, type: string, afterMs?: number])[],
  argv: readonly string[],
): Promise<Result> {
  const args = ["-c", TERMINAL, JSON.stringify(steps), ...argv];
  return shop.startProgram("python3", args).result;
}

const CLI = [process.execPath, MAIN];

describe.skipIf(!hasPython)("in a terminal (needs python3)", () => {
  it("the command reads the typed input and keeps its exit code", async () => {
    await using shop = new Workshop();
    const line = 'echo one?; read a; echo two?; read b </dev/tty; echo "got $a $b"; exit 7';
    const steps = [
      ["one?", "apple\n"],
      ["two?", "pear\n"],
    ] as const;
    const { code, stdout } = await inTerminal(shop, steps, [...CLI, "run", "x", "-c", line]);
    expect(stdout).toContain("got apple pear");
    expect(code).toBe(7);
  });

  it("an interrupt ends the command and the script around it", async () => {
    await using shop = new Workshop();
    const script = `"$0" "$@"; echo survived`;
    // A shell may miss the interrupt while it forks.
    const command = ["bash", "-c", script, ...CLI, "run", "x", "-c", "echo up; exec sleep 60"];
    const { code, stdout } = await inTerminal(shop, [["up", "\x03"]], command);
    expect(stdout).not.toContain("survived");
    expect(code).toBe(130);
    expect((await shop.run(["show", "x"])).stdout).toBe(`x is free in ${shop.store}\n`);
  });

  it("an interrupt takes effect at any moment", async () => {
    await using shop = new Workshop();
    // The process that becomes the command line prints the word: bash may miss input while it
    // forks.
    const script = `sh -c 'echo now; exec "$0" "$@"' "$0" "$@"; echo survived`;
    const command = ["bash", "-c", script, ...CLI, "run", "x", "--", "sleep", "60"];
    // From before the command line is loaded to after the command runs.
    for (let atMs = 0; atMs <= 240; atMs += 20) {
      const { code, stdout } = await inTerminal(shop, [["now", "\x03", atMs]], command);
      expect({ atMs, code, stdout }).toMatchObject({ atMs, code: 130, stdout: "now\n^C" });
    }
    expect((await shop.run(["show", "x"])).stdout).toBe(`x is free in ${shop.store}\n`);
  });

  it("an interrupt in the first moment of the launching shell is passed on once", async () => {
    await using shop = new Workshop();
    const slow = LAUNCHER.replace("\nset -m\n", "\necho now; sleep 5\nset -m\n");
    expect(slow).not.toBe(LAUNCHER);
    const around = `trap 'echo heard' INT; sh -c "$0" launcher -$$ /bin/true 3>&1 4>&1; echo over`;
    const { stdout } = await inTerminal(shop, [["now", "\x03"]], ["sh", "-c", around, slow]);
    expect(stdout).toMatch(/^now\n\^C\d+\ngroup \d+\nheard\nover\n$/);
  });

  it("the command cannot be suspended while it holds a lock", async () => {
    await using shop = new Workshop();
    // A shell that is stopped between fork and exec would not show it.
    const forks = "n=0; while [ $n -lt 200 ]; do n=$((n+1)); /bin/true; done";
    const line = `echo up; ${forks}; echo awake`;
    const { code, stdout } = await inTerminal(
      shop,
      [["up", "\x1a"]],
      [...CLI, "run", "x", "-c", line],
    );
    expect(stdout).toContain("awake");
    expect(code).toBe(0);
  });

  it("a wait shows the holder of the lock and the place in the queue", async () => {
    await using shop = new Workshop();
    const holder = await shop.hold("x");
    const steps = [["place 1 of 1", "\x03"]] as const;
    const { code, stdout } = await inTerminal(shop, steps, [...CLI, "run", "x", "--", "true"]);
    expect(stdout).toContain("x: waiting, place 1 of 1: held by sh on");
    expect(stdout).toContain(`(pid ${holder.pid})`);
    expect(code).toBe(130);
  });

  it("a wait escapes control characters in the meta of the holder", async () => {
    await using shop = new Workshop();
    const hostile = "a\x1b[31mb\x9bc\u202ed\u2028e";
    await shop.hold("--reason", hostile, "--meta", `host=${hostile}`, hostile);
    const steps = [["place 1 of 1", "\x03"]] as const;
    const command = [...CLI, "run", hostile, "--", "true"];
    const { stdout } = await inTerminal(shop, steps, command);
    expect(stdout).toContain("a?[31mb?c?d?e: waiting, place 1 of 1");
    const shown = stdout.replaceAll("\r\x1b[K", "").replaceAll("\n", "");
    expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  });

  it.each([
    ["the key q", "q", 0],
    ["Ctrl-C", "\x03", 0],
    ["Ctrl-\\", "\x1c", 0],
  ])("watch ends by %s, and the terminal is as before", async (_, key, ending) => {
    await using shop = new Workshop();
    const script = 'stty -g > before; "$0" "$@"; echo "ended $?"; stty -g > after';
    const command = ["sh", "-c", `trap : INT QUIT; ${script}`, ...CLI, "watch"];
    const { stdout } = await inTerminal(shop, [["q: quit", key]], command);
    expect(stdout).toContain("no lock is in use");
    expect(stdout).toContain(`ended ${ending}`);
    expect(shop.read("after")).toBe(shop.read("before"));
  });

  it("Ctrl-Z suspends watch, and watch reads keys again when it continues", async () => {
    await using shop = new Workshop();
    const script =
      'set -m; stty -g > before; "$0" "$@"; echo "stopped $?"; ' +
      'stty -g > after; fg; echo "ended $?"';
    const steps = [
      ["q: quit", "\x1a"],
      ["stopped 148", "q"],
    ] as const;
    const { stdout } = await inTerminal(shop, steps, ["bash", "-c", script, ...CLI, "watch"]);
    expect(stdout).toContain("ended 0");
    expect(shop.read("after")).toBe(shop.read("before"));
  });

  it("a command that ignores SIGTERM is killed when the grace is over", async () => {
    await using shop = new Workshop();
    const line =
      "trap '' TERM; echo $$ > pid; kill -s TERM $(cat parent); while :; do sleep 0.1; done";
    const starter = `echo $$ > parent; exec "$0" "$@"`;
    const run = ["run", "--grace", "500ms", "x", "-c", line];
    const { code } = await inTerminal(shop, [], ["sh", "-c", starter, ...CLI, ...run]);
    expect(code).toBe(137);
    expect(isRunning(Number(shop.read("pid")))).toBe(false);
  });

  it("reports a command that is not found", async () => {
    await using shop = new Workshop();
    const command = [...CLI, "run", "x", "--", "no-such-command-here"];
    const { code, stdout } = await inTerminal(shop, [], command);
    expect(stdout).toContain('Cannot run "no-such-command-here": not found');
    expect(code).toBe(127);
  });

  it.each([
    ["the command line", "kill -9 $(cat parent)"],
    ["its launching shell", "kill -9 $PPID"],
    ["both", "kill -9 $PPID $(cat parent)"],
  ])("the command does not outlive %s killed with -9", async (_, kill) => {
    await using shop = new Workshop();
    const line = `trap '' TERM; echo $$ > pid; ${kill}; while :; do sleep 0.1; done`;
    const starter = `echo $$ > parent; exec "$0" "$@"`;
    const run = ["run", "--ttl", "3s", "--grace", "500ms", "x", "-c", line];
    await inTerminal(shop, [], ["sh", "-c", starter, ...CLI, ...run]);
    const next = await shop.run(["run", "-w", "20s", "x", "--", "cat", "pid"]);
    expect(next.code).toBe(0);
    expect(isRunning(Number(next.stdout))).toBe(false);
  });
});
