import { makeClocks, type ShiftedClock } from "../../test/servers/clock-shift.js";

let made: ReturnType<typeof makeClocks> | undefined;
let count = 0;

/**
 * The library of the clocks. It is compiled once: the compiler blocks this process, and with it the
 * proxies of all trials that are under way.
 */
function library(): ReturnType<typeof makeClocks> {
  if (made !== undefined) return made;
  made = makeClocks();
  process.once("exit", () => made?.end());
  return made;
}

/** Clocks of the servers of one deployment, which jump; without a C compiler they do not. */
export class ServerClocks {
  readonly #clocks = new Map<number, ShiftedClock>();

  /** The environment of the server with this index. */
  env(index: number): Readonly<Record<string, string>> {
    count += 1;
    const clock = library()?.clock(`server-${count}`);
    if (clock) this.#clocks.set(index, clock);
    return clock?.env ?? {};
  }

  async shift(
    index: number,
    byMs: number,
    server: Parameters<ShiftedClock["shift"]>[1],
  ): Promise<void> {
    const clock = this.#clocks.get(index);
    if (!clock) throw new Error("a clock that jumps needs Linux and a C compiler");
    await clock.shift(byMs, server);
  }
}
