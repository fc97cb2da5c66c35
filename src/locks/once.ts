import type { Client } from "../lease/client.js";
import type { Lease } from "../lease/lease.js";
import { type AcquireOptions, checkDuration, type Options, resolveOptions } from "../options.js";
import { NO_LIMIT } from "../rules/fits.js";
import type { Busy, Meta } from "../store.js";
import { runUnder } from "./run-under.js";

export interface OnceOptions extends AcquireOptions {
  /** How long the success is remembered. */
  readonly keepMs: number;
}

/** `running`: somebody is at it. `done`: somebody has done it. */
export type OnceResult<T> =
  | { readonly ran: true; readonly value: T; readonly token: bigint }
  | {
      readonly ran: false;
      readonly state: "running" | "done";
      /** Who, where the store told. */
      readonly by: Meta | null;
      readonly token: bigint | null;
    };

/**
 * Runs `work` at least once, and not again for `keepMs` after a success. A failure frees it, a lost
 * lease leaves no mark: then somebody else may run it again, so the work must bear being repeated.
 * Whoever comes second returns at once, or with `waitMs` waits for the outcome and takes over if it
 * failed.
 */
export async function once<T>(
  client: Client,
  name: string,
  work: (lease: Lease) => T | Promise<T>,
  onceOptions: OnceOptions,
  defaults: Options,
): Promise<OnceResult<T>> {
  const { keepMs, ...given } = onceOptions ?? {};
  checkDuration("keepMs", keepMs, 1);
  const patience = { ...given, waitMs: given.waitMs ?? 0 };
  const options = resolveOptions(patience, client.store.traits, defaults);
  const target = { space: "once", name, mode: "exclusive", weight: 1, limit: NO_LIMIT } as const;
  const outcome = await client.request(target, options, options.waitMs > 0);
  if (outcome.type === "busy") return outdone(outcome);
  const { lease } = outcome;
  let isDone = false;
  const value = await runUnder(
    {
      get loss() {
        return lease.loss;
      },
      // The mark takes the place of the lease in one step, so nobody can slip in between.
      end: () => lease.release(isDone ? { ttlMs: keepMs, meta: options.meta } : undefined),
    },
    async () => {
      const result = await work(lease);
      isDone = true;
      return result;
    },
  );
  return { ran: true, value, token: lease.token };
}

function outdone({ holder, mark }: Busy): OnceResult<never> {
  const seen = mark ?? holder;
  return {
    ran: false,
    state: mark ? "done" : "running",
    by: seen?.meta ?? null,
    token: seen?.token ?? null,
  };
}
