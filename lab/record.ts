import type { Recorder } from "./actor.js";
import { nowMs } from "./clock.js";
import type { Entry, Happening } from "./history.js";

/** The entries of one trial, and the resource that the lock protects. */
export class Record implements Recorder {
  readonly #entries: Entry[] = [];
  readonly #isFenced: boolean;
  #startMs = 0;
  #highestToken = 0n;

  constructor(isFenced: boolean) {
    this.#isFenced = isFenced;
  }

  start(): void {
    this.#startMs = nowMs();
  }

  record(atMs: number, happening: Happening): void {
    this.#entries.push({ atMs: atMs - this.#startMs, ...happening });
  }

  write(lane: string, atMs: number, token: string | undefined): void {
    const number = BigInt(token ?? 0);
    const isRefused = this.#isFenced && number < this.#highestToken;
    if (number > this.#highestToken) this.#highestToken = number;
    const shown = token === undefined ? {} : { token };
    this.record(atMs, { type: "writes", lane, isRefused, ...shown });
  }

  timed<T extends { readonly atMs: number }>(sightings: readonly T[]): T[] {
    return sightings.map((one) => ({ ...one, atMs: one.atMs - this.#startMs }));
  }

  nowMs(): number {
    return nowMs() - this.#startMs;
  }

  /** In the order of time. Work of a process that was killed ends with it. */
  entries(endMs: number): Entry[] {
    const open = this.#entries.filter((entry) => {
      return entry.type === "worksFrom" && !this.#find("worksTo", entry.lane);
    });
    const ends = open.map((entry): Entry => {
      const lane = "lane" in entry ? entry.lane : "";
      const killed = this.#entries.find(
        (one) => one.type === "fault" && one.what === "killed" && one.lane === lane,
      );
      return { atMs: killed?.atMs ?? endMs, type: "worksTo", lane };
    });
    return [...this.#entries, ...ends].sort((one, other) => one.atMs - other.atMs);
  }

  #find(type: Entry["type"], lane: string): Entry | undefined {
    return this.#entries.find((one) => one.type === type && "lane" in one && one.lane === lane);
  }
}
