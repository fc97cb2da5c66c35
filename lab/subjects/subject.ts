/** Where the locks of a subject live; the trial starts servers of its own. */
export type Place =
  /** One Redis; with replicas where the fault or the subject needs them. */
  | "redis"
  /** Five independent Redis servers. */
  | "quorum"
  /** One member of etcd; three where the fault needs a successor. */
  | "etcd"
  /** One server of ZooKeeper; three where the fault needs a successor. */
  | "zookeeper"
  /** One Postgres; with a standby where the fault needs a successor. */
  | "postgres"
  /** A folder of this machine. */
  | "folder";

/** The way to the store, for one process. */
export interface Endpoint {
  /** Of each server, through the proxy of this process. */
  readonly ports: readonly number[];
  readonly folder: string;
  readonly ttlMs: number;
}

/** A lock that is held, as its program sees it. */
export interface Holding {
  /** The fencing token, where there is one. */
  readonly token?: bigint;
  /** Asked before each step of work: does the program say that it holds the lock? */
  isBelieved(): boolean;
  /** Calls `tell` when the program is told that it lost the lock. */
  onLost?(tell: (reason: string) => void): void;
  release(): Promise<unknown>;
}

/** A program with a lock, in a process of its own. */
export interface Locker {
  /** Waits for the lock, for as long as it takes. */
  acquire(name: string): Promise<Holding>;
  /** Closes its connections. Absent where the process cannot serve another trial. */
  close?(): Promise<void>;
}

/** Anything that promises to lock: a program of the ladder, a package, a store of Holdfast. */
export interface Subject {
  /** As the command names it. */
  readonly id: string;
  readonly title: string;
  readonly family: "ladder" | "holdfast" | "peer";
  readonly place: Place;
  /** It does not work without replicas. */
  readonly needsReplicas?: boolean;
  /** The resource that the lock protects compares the tokens of writes. */
  readonly isFenced?: boolean;
  readonly ttlMs: number;
  /** The only faults that it is tried in. Default: all. */
  readonly faults?: readonly string[];
  /** The program, from the folder of the project, where it is one of the ladder. */
  readonly program?: string;
  /** The packages whose versions are printed. */
  readonly packages: readonly string[];
  /** Precedes the lock's name in the key of its value. Default "". */
  readonly keyPrefix?: string;
  /** Connects, and does what a program does long before its first lock. */
  open(endpoint: Endpoint): Promise<Locker>;
  /** Absent where the store's truth is the value of the key with the lock's name. */
  readTruth?(endpoint: Endpoint): Promise<TruthReader>;
}

/** Reads which lease holds the lock, by the store. */
export interface TruthReader {
  /** The token of the holder; null where the lock is free. */
  read(): Promise<string | null>;
  /** The process that asked for the lease with this token, where the store says so. */
  pidOf?(token: string): number | undefined;
  close(): Promise<void>;
}
