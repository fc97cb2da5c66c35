import type { Wire } from "./wire.js";

/** Servers that are one store together, and the faults that they can have. */
export interface Service extends AsyncDisposable {
  readonly versions: Readonly<Record<string, string>>;
  readonly wire: Wire;
  /** The flag of `failOver` in the picture. */
  readonly succession: string;
  /** Of the servers that clients connect to. */
  readonly ports: readonly number[];
  /** All servers lose their data. Resolves when they answer again. */
  restartEmpty(): Promise<void>;
  /** Absent where the lab cannot shift its clock. */
  shiftClock?(byMs: number): Promise<void>;
  /** Writes do not reach the followers any more. Does nothing where a write needs a majority. */
  cutFollowers(): void;
  /**
   * The leader dies. Resolves when another server has taken its place, with the port of that server
   * where clients are sent there.
   */
  failOver(): Promise<number | null>;
}
