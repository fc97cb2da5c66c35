import { hostname } from "node:os";
import { basename } from "node:path";
import type { Meta, Traits } from "../contract/store.js";
import { InvalidOptionError, UnsupportedError } from "../errors/index.js";
import { MAX_DURATION_US, MAX_TURNS } from "../rules/bounds.js";
import { nameProblem } from "../rules/name.js";
import { knownOptions } from "./known-options.js";

/**
 * The options of an acquisition. Every method that returns a lock takes the same options, as
 * defaults, as its last argument. An option that is `undefined` counts as not given.
 */
export interface AcquireOptions {
  /** How long the store keeps an unrenewed grant. Default 30 000; each store has a minimum. */
  readonly ttlMs?: number | undefined;
  /**
   * Renew the lease every third of `ttlMs` until it is released. Default true. With false, choose a
   * `ttlMs` longer than the work ever takes.
   */
  readonly renew?: boolean | undefined;
  /** The lease ends after this time, renewed or not. Default: no end. */
  readonly maxHoldMs?: number | undefined;
  /**
   * Abort the lease's `signal` this long before the deadline, so that work can end while the lease
   * is still held. Default 0; must be less than half of `ttlMs`.
   */
  readonly graceMs?: number | undefined;
  /**
   * How long `acquire` and `run` wait for a lock that is held. Default 60 000; an election waits
   * forever. After that: `AcquireTimeoutError`. The call ends 250 ms later at the latest, whatever
   * the store does: with a `StoreError` if the store did not say whether the lock is held.
   */
  readonly waitMs?: number | undefined;
  /**
   * How long the store may stay silent before the call ends with a `StoreError`. Default 10 000,
   * and 1 000 for a call that does not wait: `tryAcquire`, `tryRun` and `once` without `waitMs`.
   */
  readonly storeTimeoutMs?: number | undefined;
  /** Cancels the wait, but never a lease. `acquire` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Permits of a semaphore to take. Default 1; at most its limit. */
  readonly weight?: number | undefined;
  /** A small JSON object that `inspect` and errors show. `host`, `pid` and `label` are added. */
  readonly meta?: Meta | undefined;
  /** A nested `run` or `acquire` of the same lock joins the outer `run`. Default false. */
  readonly reentrant?: boolean | undefined;
  /**
   * `"bounded"` (default): waiters of one process may take turns on one grant, at most
   * `maxLocalTurns` in a row while another process waits. `"strict"`: first come, first served,
   * across all processes.
   */
  readonly fairness?: "bounded" | "strict" | undefined;
  /** See `fairness`. Default 32; at most 1 024: a store reserves a token for each turn. */
  readonly maxLocalTurns?: number | undefined;
  /** The lease gets a `handle` by which another process may resume it. Default false. */
  readonly transferable?: boolean | undefined;
  /**
   * When `release` and `run` return. `"answered"` (default): when the store has answered the
   * release. `"sent"`: when the release is sent, which saves a round trip. This process can then
   * acquire the lock again, but another process may still find it held for a moment.
   */
  readonly release?: "answered" | "sent" | undefined;
}

/** All options with a value, checked against each other and frozen. */
export interface Options {
  readonly ttlMs: number;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly graceMs: number;
  readonly waitMs: number;
  /** Undefined if not given; the default then depends on whether the call waits. */
  readonly storeTimeoutMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly weight: number;
  readonly meta: Meta;
  readonly reentrant: boolean;
  readonly fairness: "bounded" | "strict";
  readonly maxLocalTurns: number;
  readonly transferable: boolean;
  readonly release: "answered" | "sent";
}

const MAX_META_BYTES = 2_048;

const MAX_MS = MAX_DURATION_US / 1000;

/** The meta that describes this process. */
const identity: Meta = Object.freeze({
  host: hostname(),
  pid: process.pid,
  label: basename(process.argv[1] ?? "node"),
});

export const DEFAULTS: Options = Object.freeze({
  ttlMs: 30_000,
  renew: true,
  maxHoldMs: Number.POSITIVE_INFINITY,
  graceMs: 0,
  waitMs: 60_000,
  storeTimeoutMs: undefined,
  signal: undefined,
  weight: 1,
  meta: identity,
  reentrant: false,
  fairness: "bounded",
  maxLocalTurns: 32,
  transferable: false,
  release: "answered",
});

/** The names of all options of an acquisition. */
export const OPTION_NAMES = Object.keys(DEFAULTS) as (keyof AcquireOptions)[];

/** Merges `given` over `base` and checks the result. Returns `base` if nothing is given. */
export function resolveOptions(
  given: AcquireOptions | undefined,
  traits: Traits,
  base: Options = DEFAULTS,
): Options {
  if (given === undefined && base !== DEFAULTS) return base;
  const options = { ...base };
  for (const [option, value] of Object.entries(knownOptions(given, OPTION_NAMES))) {
    if (value !== undefined) Object.assign(options, { [option]: value });
  }
  if (options.meta !== base.meta) options.meta = checkedMeta(options.meta);
  check(options, traits);
  return Object.freeze(options);
}

function check(options: Options, traits: Traits): void {
  const { ttlMs, maxHoldMs, graceMs, waitMs, storeTimeoutMs, weight, maxLocalTurns } = options;
  checkDuration("ttlMs", ttlMs, traits.minTtlMs);
  demand(isAtLeast(maxHoldMs, 1), "maxHoldMs", maxHoldMs, "must be at least 1");
  demand(
    isAtLeast(graceMs, 0) && graceMs < ttlMs / 2,
    "graceMs",
    graceMs,
    `must be from 0 to below half of ttlMs (${ttlMs / 2})`,
  );
  demand(isAtLeast(waitMs, 0), "waitMs", waitMs, "must be 0 or more; Infinity waits for ever");
  demand(
    storeTimeoutMs === undefined || isAtLeast(storeTimeoutMs, 1),
    "storeTimeoutMs",
    storeTimeoutMs,
    "must be at least 1",
  );
  demand(isCount(weight), "weight", weight, "must be a whole number from 1");
  demand(
    isCount(maxLocalTurns) && maxLocalTurns <= MAX_TURNS,
    "maxLocalTurns",
    maxLocalTurns,
    `must be a whole number from 1 to ${MAX_TURNS}`,
  );
  for (const option of ["renew", "reentrant", "transferable"] as const) {
    demand(typeof options[option] === "boolean", option, options[option], "must be true or false");
  }
  demand(
    options.fairness === "bounded" || options.fairness === "strict",
    "fairness",
    options.fairness,
    'must be "bounded" or "strict"',
  );
  demand(
    options.release === "answered" || options.release === "sent",
    "release",
    options.release,
    'must be "answered" or "sent"',
  );
  demand(
    options.signal === undefined || options.signal instanceof AbortSignal,
    "signal",
    options.signal,
    "must be an AbortSignal",
  );
  if (options.transferable && !traits.transferable) {
    throw new UnsupportedError("This store has no transferable leases.");
  }
}

/** Checks a duration. It must be finite, because stores have to represent it. */
export function checkDuration(option: string, value: unknown, leastMs: number): number {
  const isMet = isAtLeast(value, leastMs) && (value as number) <= MAX_MS;
  const rule = `must be a number of milliseconds, at least ${leastMs} and at most 100 years`;
  demand(isMet, option, value, rule);
  return value as number;
}

/** Throws unless `name` is a valid lock name. */
export function checkName(name: unknown): void {
  const problem = nameProblem(name);
  if (problem) throw new InvalidOptionError("name", name, problem);
}

export function checkCount(option: string, value: unknown): number {
  demand(isCount(value), option, value, "must be a whole number from 1");
  return value as number;
}

/** Returns a copy of `meta` as it looks after a round trip through JSON. */
export function checkedMeta(meta: unknown): Meta {
  demand(
    typeof meta === "object" && meta !== null && !Array.isArray(meta),
    "meta",
    meta,
    "must be an object",
  );
  let text: string | undefined;
  try {
    text = JSON.stringify({ ...identity, ...(meta as Meta) });
  } catch {}
  if (text === undefined) {
    throw new InvalidOptionError("meta", String(meta), "must be serialisable as JSON");
  }
  demand(
    Buffer.byteLength(text) <= MAX_META_BYTES,
    "meta",
    meta,
    `must have at most ${MAX_META_BYTES} bytes as JSON`,
  );
  return Object.freeze(JSON.parse(text) as Meta);
}

function isAtLeast(value: unknown, least: number): boolean {
  return typeof value === "number" && value >= least;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 1;
}

function demand(isMet: boolean, option: string, value: unknown, rule: string): void {
  if (!isMet) throw new InvalidOptionError(option, value, rule);
}
