import type { Store, Traits } from "../contract/store.js";

/** A fault that is armed and waits for its message. */
export interface Fault {
  /** Resolves when the fault has happened. */
  readonly struck: Promise<unknown>;
}

/** A request that the network keeps back and delivers late. */
export interface LateRequest extends Fault {
  /** Delivers it, and resolves when the store has acted on it or refused it. */
  deliver(): Promise<unknown>;
}

/** The commands that a fault can choose. */
export type Command = "acquire" | "renew" | "release";

/**
 * Faults of the connection of one store; other stores are not affected. A fault is armed when the
 * call returns, or when the returned promise resolves.
 */
export interface Faults {
  /** The next such command takes effect, but its reply never arrives. */
  loseReply(to: Command): Fault | Promise<Fault>;
  /** The next such command is kept back and its connection breaks, so the client repeats it. */
  keepBack(command: Command): LateRequest | Promise<LateRequest>;
  /** The next message that the store pushes is lost. */
  dropPush(): Fault | Promise<Fault>;
  /** No message reaches the store until `heal`. */
  cut(): Promise<void> | void;
  /** Ends a `cut`. */
  heal(): Promise<void> | void;
}

/** A store whose connection can fail. */
export interface FaultyStore extends Partial<Faults> {
  /** The store itself. */
  readonly store: Store;
}

/**
 * How the kit opens a store. Locks of one `namespace` exclude each other across stores and
 * processes. Every case has its own namespace (letters and digits), so cases may run at the same
 * time. One case opens a second namespace that begins with the first, to check that the two are
 * independent.
 */
export interface Harness {
  /** The traits of the store. They decide which cases apply. */
  readonly traits: Traits;

  /** Opens one more client of the locks in a namespace. The kit closes it. */
  open(namespace: string): Promise<Store>;

  /**
   * The ttl of cases that wait for a lease to expire. Default 800, or the minimum of the store when
   * that is more.
   */
  readonly ttlMs?: number;

  /**
   * How to open a store in another process. Required unless `traits.scope` is "process".
   */
  readonly child?: {
    /**
     * The URL of a module that plain node can run. It exports `openStore(argument)`, which returns
     * a store or a promise of one. Closing that store closes everything that was opened for it.
     */
    readonly module: URL | string;
    /** The argument of `openStore`: a JSON value. */
    argument(namespace: string): unknown;
    /** Why a process with an open store does not end by itself, if it does not. */
    readonly staysAlive?: string;
  };

  /** How to open a store whose connection can fail. */
  readonly faults?: {
    /** The faults that `open` supports. */
    readonly kinds: readonly (keyof Faults)[];
    open(namespace: string): Promise<FaultyStore>;
  };

  /** Deletes all state of a namespace, like a server that lost its data. */
  wipe?(namespace: string): Promise<void>;

  /** The state that the store keeps for a namespace, one line for each name. */
  leftovers?(namespace: string): Promise<readonly string[]>;

  /** Cases that do not apply to this store, by title, each with the reason. */
  readonly exempt?: Readonly<Record<string, string>>;
}
