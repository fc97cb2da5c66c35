import { jsonOf, withJson } from "./json.js";
import type { Space } from "./rules/name.js";

/** Why a lease ended before it was released. */
export type LossReason =
  | "expired"
  | "replaced"
  | "missing"
  | "revoked"
  | "session_ended"
  | "max_hold";

/** Whether a failed call may have taken effect in the store. */
export type Outcome = "not_applied" | "unknown";

export interface ErrorContext {
  readonly cause?: unknown;
  readonly lockName?: string | undefined;
  readonly store?: string | undefined;
}

/** A brand, not a prototype: `instanceof` also holds across two installed copies of the package. */
const BRAND = Symbol.for("holdfast.error");

/** Every error of this package; `code` says which. */
export class HoldfastError extends Error {
  /** What `instanceof` compares; a class of your own needs its own. */
  static readonly brand: string = "HoldfastError";
  readonly code: string = "HF_ERROR";
  readonly lockName: string | undefined;
  readonly store: string | undefined;

  constructor(message: string, context: ErrorContext = {}) {
    super(message, "cause" in context ? { cause: context.cause } : undefined);
    this.lockName = context.lockName;
    this.store = context.store;
    const brands: string[] = [];
    for (let type = new.target; type.brand !== undefined; type = Object.getPrototypeOf(type)) {
      brands.push(type.brand);
    }
    Object.defineProperty(this, BRAND, { value: brands });
    this.name = new.target.brand;
  }

  /** The same with the lock that it is about, which the code that threw did not know. */
  about(lockName: string, store: string): this {
    if (this.lockName !== undefined) return this;
    // A copy: one failure may end several calls, each about its own lock.
    const cause = "cause" in this ? { cause: this.cause } : undefined;
    const copy = new Error(`Lock "${lockName}": ${this.message}`, cause);
    Object.defineProperty(copy, BRAND, { value: (this as { [BRAND]?: unknown })[BRAND] });
    return Object.assign(Object.setPrototypeOf(copy, Object.getPrototypeOf(this)), this, {
      lockName,
      store,
    });
  }

  /** What a log needs of it: `JSON.stringify` shows no error by itself, and takes no `bigint`. */
  toJSON(): Record<string, unknown> {
    const { name, message, cause } = this;
    const shown = cause instanceof Error ? { cause: `${cause.name}: ${cause.message}` } : {};
    return { name, message, ...(jsonOf({ ...this }) as object), ...shown };
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== "object" || value === null) return false;
    const brands = (value as { [BRAND]?: unknown })[BRAND];
    return Array.isArray(brands) && brands.includes(this.brand);
  }
}

/** An option or argument that cannot work, found before anything was sent. */
export class InvalidOptionError extends HoldfastError {
  static override readonly brand: string = "InvalidOptionError";
  override readonly code = "HF_INVALID_OPTION";
  readonly option: string;
  readonly value: unknown;
  readonly rule: string;

  constructor(
    option: string,
    value: unknown,
    rule: string,
    message = `Invalid ${option}: ${show(value)}. It ${rule}.`,
  ) {
    super(message);
    this.option = option;
    this.value = value;
    this.rule = rule;
  }

  /** The value may be anything, a circle too: it is shown as in the message. */
  override toJSON(): Record<string, unknown> {
    const { name, message, code, lockName, store, option, value, rule } = this;
    return { name, message, code, lockName, store, option, value: show(value), rule };
  }
}

/** The error for a value that is described instead of shown: a secret, or an object of another. */
export function invalidValue(
  option: string,
  description: string | undefined,
  rule: string,
): InvalidOptionError {
  const message = `Invalid ${option}: ${description}. It ${rule}.`;
  return new InvalidOptionError(option, description, rule, message);
}

/** Who held the lock when the wait was over. */
export interface BlockedBy {
  readonly token: bigint;
  readonly heldMs: number;
  readonly meta: Readonly<Record<string, unknown>>;
}

/** The lock was not free within `waitMs`. */
export class AcquireTimeoutError extends HoldfastError {
  static override readonly brand: string = "AcquireTimeoutError";
  override readonly code = "HF_ACQUIRE_TIMEOUT";
  readonly waitMs: number;
  /** The holder in the way, where the store told. */
  readonly holder: BlockedBy | null;

  constructor(waitMs: number, holder: BlockedBy | null, context: ErrorContext) {
    const by = holder ? ` It is held by ${describe(holder)}.` : "";
    super(
      `Lock "${context.lockName}" was not acquired within ${Math.round(waitMs)} ms.${by} ` +
        "Wait longer (waitMs), or treat it as busy (tryAcquire).",
      context,
    );
    this.waitMs = waitMs;
    this.holder = holder && withJson({ ...holder });
  }
}

const LOSS: Record<LossReason, string> = {
  expired: "it was not renewed before its deadline (store unreachable or event loop blocked?)",
  replaced: "another owner holds the lock now",
  missing: "the store no longer knows it (data lost, or deleted by hand?)",
  revoked: "it was revoked",
  session_ended: "its session with the store ended",
  max_hold: "it reached maxHoldMs",
};

/** The lease ended before it was released: others may hold the lock, so the work must stop. */
export class LeaseLostError extends HoldfastError {
  static override readonly brand: string = "LeaseLostError";
  override readonly code = "HF_LEASE_LOST";
  readonly reason: LossReason;
  readonly token: bigint | null;
  /** What the store or whoever revoked it had to say. */
  readonly detail: string;
  /** What the body of `run` returned, when it ended after the loss. */
  value: unknown = undefined;

  constructor(reason: LossReason, context: ErrorContext & LossContext) {
    const { token = null, detail = "", why = LOSS[reason], text } = context;
    const lost = `The lease of lock "${context.lockName}" is lost`;
    const advice = "Stop the work it guards, and check its token wherever it writes.";
    super(text ?? `${lost}: ${why}${detail && ` (${detail})`}. ${advice}`, context);
    this.reason = reason;
    this.token = token;
    this.detail = detail;
  }
}

/** The error for a use of a lease after its release: nobody took it away. */
export function releasedBefore(context: ErrorContext & LossContext): LeaseLostError {
  const advice = "release it after the last use, or acquire the lock again";
  const text = `The lease of lock "${context.lockName}" was released before this call: ${advice}.`;
  return new LeaseLostError("missing", { ...context, text });
}

export interface LossContext {
  readonly token?: bigint | null;
  readonly detail?: string;
  /** Says it better than the reason alone. */
  readonly why?: string;
  /** The whole text, where no work has to stop. */
  readonly text?: string;
}

/** The store failed or stayed silent. */
export class StoreError extends HoldfastError {
  static override readonly brand: string = "StoreError";
  override readonly code: string = "HF_STORE";
  /** `unknown`: the call may have taken effect. */
  readonly outcome: Outcome;
  /** Whether the same call may succeed later. */
  readonly retryable: boolean;

  constructor(
    message: string,
    {
      outcome,
      retryable = true,
      ...context
    }: ErrorContext & { outcome: Outcome; retryable?: boolean },
  ) {
    super(message, context);
    this.outcome = outcome;
    this.retryable = retryable;
  }
}

/** True for an error of the store that the same call would meet again: trying again is no use. */
export function isFinal(error: unknown): error is StoreError {
  return error instanceof StoreError && !error.retryable;
}

/** Too few replicas had a grant in time: it does not count, and was given back. */
export class ReplicationError extends StoreError {
  static override readonly brand: string = "ReplicationError";
  override readonly code = "HF_STORE_REPLICATION";
  /** How many replicas had to have it. */
  readonly asked: number;
  /** How many said so within `timeoutMs`. */
  readonly acknowledged: number;
  readonly timeoutMs: number;

  constructor(asked: number, acknowledged: number, timeoutMs: number, context: ErrorContext = {}) {
    super(
      `Only ${acknowledged} of ${asked} replicas had the grant within ${timeoutMs} ms: ` +
        "check the replicas, or ask for fewer (replicas), or give them more time.",
      { ...context, outcome: "unknown", retryable: false },
    );
    this.asked = asked;
    this.acknowledged = acknowledged;
    this.timeoutMs = timeoutMs;
  }
}

/** What one of several independent nodes said. */
export interface NodeVote {
  readonly node: string;
  readonly vote:
    | "granted"
    | "held"
    | "too_low"
    | "too_high"
    | "not_voting"
    | "missing"
    | "foreign"
    | "time_out"
    | "error";
  /** The same in words, with the text of an error. */
  readonly detail: string;
}

/** Too few of several independent nodes agreed; `votes` says what each of them did. */
export class QuorumError extends StoreError {
  static override readonly brand: string = "QuorumError";
  override readonly code = "HF_STORE_QUORUM";
  readonly votes: readonly NodeVote[];
  /** What to do about it. */
  readonly advice: string;

  constructor(
    votes: readonly NodeVote[],
    advice: string,
    context: ErrorContext & { outcome: Outcome; retryable?: boolean },
  ) {
    const said = votes.map(({ node, detail }) => `${node}: ${detail.replace(/\.$/, "")}`);
    const lock = context.lockName === undefined ? "" : `Lock "${context.lockName}": `;
    const text = `No majority of the ${votes.length} nodes (${said.join("; ")}). ${advice}`;
    super(lock + text, context);
    this.votes = votes;
    this.advice = advice;
  }
}

/** The store cannot do this; the message says which can. */
export class UnsupportedError extends HoldfastError {
  static override readonly brand: string = "UnsupportedError";
  override readonly code = "HF_UNSUPPORTED";
}

const AROUND: Record<Space, string> = { lock: "run", election: "lead", once: "once" };

/** The call would wait for the `run`, `lead` or `once` that it is made in. */
export class DeadlockError extends HoldfastError {
  static override readonly brand: string = "DeadlockError";
  override readonly code = "HF_WOULD_DEADLOCK";

  /** `remedy` is what helps besides a call after the run; empty where nothing does. */
  constructor(space: Space, remedy: string, context: ErrorContext) {
    const around = AROUND[space];
    super(
      `This call would wait for the ${around} around it, which holds ${space} ` +
        `"${context.lockName}". ` +
        `${remedy === "" ? "Make" : `${remedy}, or make`} the call after that ${around}.`,
      context,
    );
  }
}

/** Something was asked of a Holdfast that is closed. */
export class ClosedError extends HoldfastError {
  static override readonly brand: string = "ClosedError";
  override readonly code = "HF_CLOSED";

  constructor(context: ErrorContext = {}) {
    super("This Holdfast is closed: make a new one, or close it later.", context);
  }
}

/** What `check` returns; its errors name the lock. */
export function aboutLock<T>(lockName: string, store: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof HoldfastError ? error.about(lockName, store) : error;
  }
}

function describe({ meta, heldMs, token }: BlockedBy): string {
  // A store that shares its keys with other programs shows a holder of those with token 0.
  if (token === 0n) return "another program, by a key that Holdfast did not write";
  const { host, pid, label, inside: _, ...more } = meta;
  const who = [label, host && pid ? `${host} (pid ${pid})` : host, `token ${token}`];
  const about = Object.keys(more).length > 0 ? `, ${show(more)}` : "";
  return `${who.filter(Boolean).join(", ")} for ${Math.round(heldMs)} ms${about}`;
}

function show(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number" || value === undefined) return String(value);
  try {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > 80 ? `${text.slice(0, 77)}...` : text;
  } catch {
    return String(value);
  }
}
