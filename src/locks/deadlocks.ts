/**
 * Finds circles of waits, also between processes. A call that waits inside a `run` of another lock
 * names that lock and its token in its meta. So the views of all locks show which lease waits for
 * which: a lease waits for the holders of every lock that is requested inside its `run`.
 */

import type { HolderView, LockView, Meta } from "../contract/store.js";
import type { Enclosing } from "../lease/request-options.js";
import { withJson } from "../rules/json.js";

/** One lease of a circle, and the lock that the work under this lease waits for. */
export interface DeadlockStep {
  /** The name of the lock that this lease holds. */
  readonly name: string;
  /** The token of this lease. Pass it to `revoke` to break the circle here. */
  readonly token: bigint;
  /** The `meta` of the holder, which identifies its process. */
  readonly meta: Meta;
  /** The name of the lock that it waits for, which the next step holds. */
  readonly waitsFor: string;
}

/** Leases that wait for each other: each waits for a lock that the next one holds. */
export interface Deadlock {
  /** The steps, in the order of the circle; the last one waits for the first. */
  readonly steps: readonly DeadlockStep[];
}

/** A lease that is held, and the locks that are requested inside its `run`. */
interface Holding {
  readonly name: string;
  readonly holder: HolderView;
  readonly waitsFor: Set<string>;
}

/** A call that waits for a turn within this process, which the store does not know about. */
export interface LocalWait {
  readonly name: string;
  readonly inside: Iterable<Enclosing>;
}

/** Returns each circle once, however many waits are part of it. */
export function deadlocksOf(views: readonly LockView[], local: Iterable<LocalWait>): Deadlock[] {
  const holdings = new Map<string, Holding[]>();
  for (const { name, holders } of views) {
    holdings.set(
      name,
      holders.map((holder) => ({ name, holder, waitsFor: new Set<string>() })),
    );
  }
  for (const { name, waiters } of views) {
    for (const { meta } of waiters) {
      for (const outer of enclosingOf(meta)) {
        holdingOf(holdings.get(outer.name) ?? [], outer.token)?.waitsFor.add(name);
      }
    }
  }
  for (const { name, inside } of local) {
    for (const outer of inside) {
      holdingOf(holdings.get(outer.name) ?? [], BigInt(outer.token))?.waitsFor.add(name);
    }
  }
  const done = new Set<Holding>();
  const found: Deadlock[] = [];
  for (const holding of [...holdings.values()].flat()) {
    const circle = circleFrom(holding, holdings, done);
    if (circle) found.push({ steps: circle });
  }
  return found;
}

/** Depth-first search. A lease that is already on the path closes a circle. */
function circleFrom(
  start: Holding,
  holdings: ReadonlyMap<string, readonly Holding[]>,
  done: Set<Holding>,
): DeadlockStep[] | null {
  const path: { holding: Holding; next: [string, Holding][] }[] = [];
  const enter = (holding: Holding): void => {
    done.add(holding);
    const next = [...holding.waitsFor].flatMap((name) => {
      return (holdings.get(name) ?? []).map((held): [string, Holding] => [name, held]);
    });
    path.push({ holding, next });
  };
  if (done.has(start)) return null;
  enter(start);
  for (let last = path.at(-1); last; last = path.at(-1)) {
    const edge = last.next.pop();
    if (!edge) {
      path.pop();
      continue;
    }
    const [, target] = edge;
    const from = path.findIndex(({ holding }) => holding === target);
    if (from >= 0) {
      const circle = path.slice(from).map(({ holding }) => holding);
      return circle.map((holding, at) => stepOf(holding, circle[(at + 1) % circle.length]));
    }
    if (!done.has(target)) enter(target);
  }
  return null;
}

function stepOf({ name, holder }: Holding, next: Holding | undefined): DeadlockStep {
  const { token, meta } = holder;
  return withJson({ name, token, meta, waitsFor: next?.name ?? name });
}

/** Finds the grant of a token: the one with the highest token that is not above it. */
function holdingOf(holdings: readonly Holding[], token: bigint): Holding | undefined {
  let found: Holding | undefined;
  for (const holding of holdings) {
    const own = holding.holder.token;
    if (own <= token && (!found || own > found.holder.token)) found = holding;
  }
  return found;
}

/** The runs around a waiter, from its meta. Checks it, because any program may have written it. */
function enclosingOf({ inside }: Meta): { readonly name: string; readonly token: bigint }[] {
  if (!Array.isArray(inside)) return [];
  return inside.flatMap((one: unknown) => {
    const { name, token } = (one ?? {}) as { name?: unknown; token?: unknown };
    const isWellFormed =
      typeof name === "string" && typeof token === "string" && /^\d{1,20}$/.test(token);
    return isWellFormed ? [{ name, token: BigInt(token) }] : [];
  });
}
