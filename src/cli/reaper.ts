/**
 * The reaper ends the command when this process cannot do it any more. If this process is killed
 * with -9, the pipe to the reaper closes; if it is stopped, no further word comes in time.
 *
 * The reaper is a shell: it starts in a millisecond and can wait for a pipe. Words it understands:
 * `group N` (the process group to watch), `alive A B` (TERM after A seconds and KILL after another
 * B unless a new word comes), `ending` (the grace has begun), `done`. While the group is watched
 * and its grace has not begun, at least `graceMs` of the lease are left: so on a closed pipe there
 * is time for TERM, some waiting, and KILL.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";

// dash wants `kill -s NAME -- -GROUP`. The timer kills its own sleep when it is cancelled, so that
// no process is left behind. `$1` is how often to look, a tenth of a second apart, before KILL.
const SCRIPT = `
trap '' HUP INT QUIT TERM
group= timer= quiet= steps=$1
send() { kill -s "$1" -- "-$group" 2>/dev/null; }
cancel() {
  if [ -n "$timer" ]; then kill -s USR1 "$timer" 2>/dev/null; wait "$timer"; fi
  timer=
}
arm() {
  cancel
  if [ -z "$group" ] || [ -z "$quiet" ]; then return; fi
  (
    nap() { sleep "$1" & napping=$!; wait "$napping"; }
    napping=
    trap 'kill -s KILL "$napping"; exit' USR1
    nap "$quiet"
    send TERM; send CONT
    nap "$grace"
    send KILL
  ) & timer=$!
}
while read -r word first second; do
  case $word in
    group) group=$first; arm ;;
    alive) quiet=$first grace=$second; arm ;;
    ending) steps=0 ;;
    done) cancel; exit ;;
  esac
done
cancel
if [ -z "$group" ]; then exit; fi
if [ "$steps" -gt 0 ]; then send TERM; send CONT; fi
while [ "$steps" -gt 0 ] && send 0; do sleep 0.1; steps=$((steps - 1)); done
send KILL
`;

/** How much longer than promised the shell's tenths of a second may take. */
const STEP_MS = 125;

export class Reaper {
  readonly #shell: ChildProcess;
  readonly #graceMs: number;

  constructor(graceMs: number) {
    this.#graceMs = graceMs;
    const steps = String(Math.floor(graceMs / STEP_MS));
    // A session of its own: neither the terminal nor a signal to our group reaches it.
    this.#shell = spawn("/bin/sh", ["-c", SCRIPT, "holdfast-reaper", steps], {
      cwd: "/",
      env: { PATH: process.env.PATH },
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#shell.on("error", () => {});
    this.#shell.stdin?.on("error", () => {});
    this.#shell.unref();
  }

  /** The pipe to the reaper: the launching shell writes the number of its group into it. */
  get pipe(): Writable {
    return this.#shell.stdin as Writable;
  }

  /** A signal that was typed just as the reaper started still reached it in our own group. */
  get killedBy(): NodeJS.Signals | null {
    return this.#shell.signalCode;
  }

  /** The lease holds for `remainingMs`: the reaper waits that long for the next message. */
  alive(remainingMs: number): void {
    // A little later than this process acts itself, so that the group is not told twice.
    const quietMs = Math.max(0, remainingMs - this.#graceMs * 0.9);
    const windDownMs = Math.max(0, remainingMs - quietMs - this.#graceMs * 0.2);
    this.#tell(`alive ${seconds(quietMs)} ${seconds(windDownMs)}`);
  }

  /** The group got TERM: the reaper sends only KILL. */
  ending(remainingMs: number): void {
    this.#tell("ending");
    this.#tell(`alive ${seconds(remainingMs)} 0`);
  }

  /** The command has ended: the reaper exits. */
  done(): void {
    this.#tell("done");
  }

  #tell(word: string): void {
    this.#shell.stdin?.write(`${word}\n`);
  }
}

function seconds(durationMs: number): string {
  return (durationMs / 1_000).toFixed(3);
}
