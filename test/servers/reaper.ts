import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

// A shell that reads a pipe whose other end only this process holds. The kernel closes that end
// when this process ends in any way, SIGKILL included. The shell then kills the process group that
// was named last and removes the folder. An orderly end takes the same path, with nothing left to
// kill.
//
// One gap of some microseconds stays: a SIGKILL between the start of a process and the line that
// names it. `rm` is repeated because a process just killed may still be creating a file.
const script = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -s KILL -- "-$pid"; fi
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" && break
  sleep 0.1
done
`;

/** Ends a process group and removes a folder when this process ends. */
export class Reaper {
  readonly #shell: ChildProcess;
  readonly #gone: Promise<unknown>;

  constructor(dir: string) {
    // A session of its own: Ctrl-C at the terminal must not reach it.
    this.#shell = spawn("/bin/sh", ["-c", script, "holdfast-reaper", dir], {
      cwd: "/",
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#gone = once(this.#shell, "exit");
    this.#shell.unref();
  }

  get pid(): number {
    return this.#shell.pid ?? -1;
  }

  /** Call it right after the start. `pid` is the leader of the process group. */
  watch(pid: number): void {
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /** Call it when the process has ended: another process may get its id soon. */
  forget(): void {
    this.#shell.stdin?.write("\n");
  }

  /** Kills the watched process group, removes the folder, and resolves after both. */
  async close(): Promise<void> {
    this.#shell.ref();
    this.#shell.stdin?.end();
    await this.#gone;
  }
}
