import type { Traits } from "../contract/store.js";
import type { Context } from "./context.js";
import type { Faults, Harness } from "./harness.js";

type Need = (traits: Traits, harness: Harness) => string | null;

/** Every need: the first reason that applies. */
export function needAll(...needs: readonly Need[]): Need {
  return (traits, harness) => {
    for (const need of needs) {
      const reason = need(traits, harness);
      if (reason !== null) return reason;
    }
    return null;
  };
}

export const needShared: Need = ({ modes }) =>
  modes.includes("shared") ? null : "the store has no shared locks";

export const needFifo: Need = ({ fifo }) =>
  fifo ? null : "the store does not promise an order among waiters";

export const needSpans: Need = ({ tokenSpan }) =>
  tokenSpan ? null : "the store grants one token at a time, so clients take no turns";

export const needMarks: Need = ({ marks }) => (marks ? null : "the store leaves no marks");

export const needTransfer: Need = ({ transferable }) =>
  transferable ? null : "the store has no transferable leases";

/** A client in another process, which may or may not share locks with this process. */
export const needChild: Need = (_, { child }) => (child ? null : "the harness has no child");

/** Clients in several processes that exclude each other. */
export const needProcesses: Need = needAll(needChild, ({ scope }) =>
  scope === "process" ? "the store does not reach beyond its process" : null,
);

/** Processes that can be stopped and continued. */
export const needStopping: Need = needAll(needProcesses, () =>
  process.platform === "win32" ? "this system cannot stop a process" : null,
);

/** A process that ends when the locks do not keep it alive. */
export const needExit: Need = (_, { child }) => child?.staysAlive ?? null;

export const needWipe: Need = (_, { wipe }) =>
  wipe ? null : "the harness cannot delete the state under a holder";

export const needLeftovers: Need = (_, { leftovers }) =>
  leftovers ? null : "the harness cannot list what is left";

export function needFaults(...kinds: readonly (keyof Faults)[]): Need {
  return (_, { faults }) => {
    const missing = kinds.filter((kind) => !faults?.kinds.includes(kind));
    return missing.length === 0 ? null : `the harness cannot ${missing.join(" and ")}`;
  };
}

/** One promise of the store contract. It binds every store whose traits include it. */
export interface Behaviour {
  /** A sentence about the store. */
  readonly title: string;
  /** Whether it blocks the event loop, so that other cases of this process would fail. */
  readonly alone?: boolean;
  /** Why the behaviour does not apply, or null when it does. */
  needs?(traits: Traits, harness: Harness): string | null;
  run(context: Context): Promise<void>;
}
