import type { Store, Traits } from "../store.js";

/** A fault that waits for its message. */
export interface Fault {
  /** Resolves when it has struck. */
  readonly struck: Promise<unknown>;
}

/** A request that the network keeps back, and delivers when nobody expects it any more. */
export interface LateRequest extends Fault {
  /** Resolves when the store has acted on it, or refused it. */
  deliver(): Promise<unknown>;
}

/** Commands whose way to the store and back can be disturbed. */
export type Command = "acquire" | "renew" | "release";

/**
 * What can be done to the connection of one store; other stores do not notice. A fault is in place
 * when the call returns, or when what it returns resolves.
 */
export interface Faults {
  /** The next such command takes effect, but its answer never arrives. */
  loseReply(to: Command): Fault | Promise<Fault>;
  /** The next such command is kept back and its connection breaks, so that it is sent once more. */
  keepBack(command: Command): LateRequest | Promise<LateRequest>;
  /** The next message that the store sends without being asked is lost. */
  dropPush(): Fault | Promise<Fault>;
  /** Nothing reaches the store any more, until `heal`. */
  cut(): Promise<void> | void;
  /** Ends a `cut`. */
  heal(): Promise<void> | void;
}

/** A store whose connection can be disturbed. */
export interface FaultyStore extends Partial<Faults> {
  /** The store itself. */
  readonly store: Store;
}

/**
 * How the kit gets hold of a store. Locks of one `namespace` exclude each other whichever store or
 * process they come from. Every case has a namespace of its own (letters and digits), so that cases
 * may run at the same time; one opens a second, which begins with the first, to see that they are
 * apart.
 */
export interface Harness {
  /** As the store itself says; cases are picked by them. */
  readonly traits: Traits;

  /** Opens one more client of the locks in a namespace. The kit closes it. */
  open(namespace: string): Promise<Store>;

  /**
   * The shortest lease that cases rely on where they wait for one to expire. Default 800, or what
   * the store allows when that is more.
   */
  readonly ttlMs?: number;

  /**
   * How to make a client in another process: needed where `traits.scope` is more than the process.
   */
  readonly child?: {
    /**
     * The URL of a module that plain node can run. It exports `openStore(argument)`, which returns
     * a store or a promise of one. To close that store ends everything that was opened for it.
     */
    readonly module: URL | string;
    /** What `openStore` is given: a JSON value. */
    argument(namespace: string): unknown;
    /** Why a process with an open store does not end by itself, where it does not. */
    readonly staysAlive?: string;
  };

  /** How to make a client whose connection can be disturbed. */
  readonly faults?: {
    /** Those that a store opened here has. */
    readonly kinds: readonly (keyof Faults)[];
    open(namespace: string): Promise<FaultyStore>;
  };

  /** Deletes all state of a namespace, as a server that lost its data. */
  wipe?(namespace: string): Promise<void>;

  /** What the store keeps for a namespace, one line for each name; empty when nothing is left. */
  leftovers?(namespace: string): Promise<readonly string[]>;

  /** Cases that do not apply to this store, by title, each with the reason. */
  readonly exempt?: Readonly<Record<string, string>>;
}
