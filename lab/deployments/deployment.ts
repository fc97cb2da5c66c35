/** The servers of one trial, and the faults that they and the network can have. */
import type { LaneLinks } from "./lane-links.js";

export interface Deployment extends AsyncDisposable {
  /** Versions of the servers, by their names. */
  readonly versions: Readonly<Record<string, string>>;
  readonly folder: string;
  /** The flag of `failOver` in the picture. */
  readonly succession: string;
  /** The links of one process to the servers. */
  links(lane: string): LaneLinks;
  /**
   * The value or token by which the store says that the lock is held; null where it is free.
   * Rejects while the store does not answer.
   */
  readTruth(): Promise<string | null>;
  /** The lock stays taken forever unless it is released. */
  isEndless(): Promise<boolean>;
  /** The lane whose request had this value in it. */
  laneOf(value: string): string | null;
  /**
   * Lets this lane reach only as many servers as a majority needs. Does nothing where there is one
   * server.
   */
  bareMajority(lane: string): void;
  /** A server of that majority loses its data, a folder its files. Resolves when it is back. */
  restartEmpty(): Promise<void>;
  /** The clock of a server of that majority jumps ahead. */
  shiftClock(byMs: number): Promise<void>;
  /** Writes do not reach these replicas any more. */
  cutReplicas(replicas: "all" | "second"): void;
  /** The master dies, and this replica takes its place; where there is none, a server dies. */
  failOver(to: "first" | "second"): Promise<void>;
}
