import type { Actor } from "../actor.js";
import type { Deployment } from "../deployments/deployment.js";
import type { FaultKind } from "../history.js";
import type { Subject } from "../subjects/subject.js";

/** The parts that a fault's script acts on. */
export interface Scene {
  readonly a: Actor;
  readonly b: Actor;
  /** Where the fault has three processes. */
  readonly c: Actor;
  readonly store: Deployment;
  readonly ttlMs: number;
  /** Records a fault of the store. */
  happens(what: FaultKind, text: string): void;
  /** The machine was too busy for the script: the trial is repeated with longer leases. */
  late(): void;
}

/** A fault is a script: the order of requests, and the moment of each fault. */
export interface Fault {
  /** As the command names it. */
  readonly id: string;
  readonly title: string;
  /** How many processes it needs. Default 2: each costs a start. */
  readonly processes?: 3;
  /** Its trials have leases that are so many times as long. Default 1. */
  readonly stretch?: number;
  /** It hits the network or a server: a folder has neither. */
  readonly needsServer?: boolean;
  /** Timers and answers may be late by this part of the ttl. Default: see the trial. */
  readonly latest?: number;
  /** The processes must get the lock in the order in which they ask. */
  readonly isOrdered?: boolean;
  /** A server loses its data. */
  readonly empties?: boolean;
  /** It needs replicas of the one Redis. */
  readonly needsReplicas?: boolean;
  /**
   * How long a lock that no process holds may stay taken while a process asks, as a multiple of the
   * ttl.
   */
  readonly patience: number;
  /** The reason for which it cannot happen to this subject. */
  exempts?(subject: Subject): string | null;
  run(scene: Scene): Promise<void>;
}

/** A asks, and works: the lock is free. A program that a busy machine refuses asks again. */
export async function takes({ a, ttlMs, late }: Scene): Promise<void> {
  if (!(await a.insists(ttlMs))) late();
}

/** The longest time for which a script waits for a lock, as a multiple of the ttl. */
export const WAIT = 3;
/** Long enough to see two work at once, or one that does not get what another holds. */
export const LOOK = 0.4;
/** A holder works for so long at least, as a part of the ttl: the picture shows it. */
export const SHOWN = 0.15;
/** The lock of a holder that died comes free after its ttl; the rest is for a busy machine. */
export const ONE_TTL = 2;
/** No holder died: a process waits for its connections alone. A ghost lasts for about a ttl. */
export const AT_ONCE = 0.8;
/** A process that is blocked by its own lock waits for the whole ttl, and never less. */
export const LESS_THAN_TTL = 0.95;
