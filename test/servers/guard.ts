import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

// A shell that reads a pipe whose other end only we hold. The kernel closes that end however we
// die, kill -9 included; the shell then kills the process group named last and removes the folder.
// The same path is taken at an orderly end, when nothing is left to kill.
//
// What stays open: a kill -9 between the start of a process and the line that names it, some
// microseconds. `rm` is repeated because a process just killed may still be creating a file.
const script = `
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ]; then kill -s KILL -- "-$pid"; fi
for attempt in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf -- "$1" && break
  sleep 0.1
done
`;

/** Sees to it that a process group and a folder do not outlive this process. */
export class Guard {
  readonly #shell: ChildProcess;
  readonly #gone: Promise<unknown>;

  constructor(dir: string) {
    // Its own session: an interrupt typed at the terminal must not reach it.
    this.#shell = spawn("/bin/sh", ["-c", script, "holdfast-guard", dir], {
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

  /** Call at once after the start: `pid` is the leader of the group to kill. */
  watch(pid: number): void {
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /** Call when the process has ended: its number may soon be another's. */
  forget(): void {
    this.#shell.stdin?.write("\n");
  }

  /** Kills what is still watched, removes the folder, and is done when both happened. */
  async close(): Promise<void> {
    this.#shell.ref();
    this.#shell.stdin?.end();
    await this.#gone;
  }
}
