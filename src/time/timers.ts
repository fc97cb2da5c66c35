/** A task that runs later unless it is cancelled. */
export interface Timer {
  /** The task will not run; does nothing after it ran. */
  cancel(): void;
  /** Whether the process has to stay alive for the task. */
  keepAlive(isNeeded: boolean): void;
}

/** Runs tasks later. */
export interface Timers {
  /**
   * Runs `task` once, about `delayMs` from now: up to 1 ms early, any time late. Keeps the process
   * alive only when asked to.
   */
  after(delayMs: number, task: () => void, keepAlive?: boolean): Timer;
  /** Runs `task` when the current turn and its promises are done, before any I/O. */
  soon(task: () => void): void;
}

/** `setTimeout` fires at once beyond this. */
const MAX_MS = 2 ** 31 - 1;

class SystemTimer implements Timer {
  #timeout: NodeJS.Timeout | undefined;
  #isNeeded: boolean;

  constructor(delayMs: number, task: () => void, isNeeded: boolean) {
    this.#isNeeded = isNeeded;
    this.#start(delayMs, task);
  }

  cancel(): void {
    clearTimeout(this.#timeout);
    this.#timeout = undefined;
  }

  keepAlive(isNeeded: boolean): void {
    this.#isNeeded = isNeeded;
    if (isNeeded) this.#timeout?.ref();
    else this.#timeout?.unref();
  }

  #start(delayMs: number, task: () => void): void {
    const restMs = delayMs - MAX_MS;
    this.#timeout =
      restMs > 0
        ? setTimeout(() => this.#start(restMs, task), MAX_MS)
        : setTimeout(task, Math.max(0, delayMs));
    if (!this.#isNeeded) this.#timeout.unref();
  }
}

export const systemTimers: Timers = {
  after: (delayMs, task, keepAlive = false) => new SystemTimer(delayMs, task, keepAlive),
  soon: (task) => process.nextTick(task),
};

/**
 * The outcome of `work`, or a throw when it takes longer than `limitMs`. The process stays alive
 * until then, unless `keepAlive` is false.
 */
export function within<T>(
  timers: Timers,
  limitMs: number,
  work: Promise<T>,
  keepAlive = true,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = timers.after(limitMs, () => reject(new TimeLimitError(limitMs)), keepAlive);
    work.then(
      (result) => {
        timer.cancel();
        resolve(result);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}

/** Something took longer than it was given. */
export class TimeLimitError extends Error {
  constructor(limitMs: number) {
    super(`No answer within ${Math.round(limitMs)} ms.`);
    this.name = "TimeLimitError";
  }
}
