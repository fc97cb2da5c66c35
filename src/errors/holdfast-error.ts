import { jsonOf } from "../rules/json.js";

/** The facts that any error of this package may carry. */
export interface ErrorContext {
  /** The error of a client or of the system that led to this one. */
  readonly cause?: unknown;
  /** The name of the lock that the failed call was about. */
  readonly lockName?: string | undefined;
  /** The name of the store that the lock lives in, such as `redis`. */
  readonly store?: string | undefined;
}

/** A brand, not a prototype: `instanceof` also holds across two installed copies of the package. */
const BRAND = Symbol.for("holdfast.error");

/** Every error of this package; `code` says which. */
export class HoldfastError extends Error {
  /** The text that `instanceof` compares; a subclass of yours needs its own. */
  static readonly brand: string = "HoldfastError";
  /** The kind of the error, the same in all versions; `docs/errors.md` lists all codes. */
  readonly code: string = "HF_ERROR";
  /** The name of the lock; undefined where the error is about no single lock. */
  readonly lockName: string | undefined;
  /** The name of the store, such as `redis`; undefined before a store was asked. */
  readonly store: string | undefined;

  constructor(message: string, context: ErrorContext = {}) {
    super(message, "cause" in context ? { cause: context.cause } : undefined);
    this.lockName = context.lockName;
    this.store = context.store;
    Object.defineProperty(this, BRAND, { value: brandsOf(new.target) });
    this.name = new.target.brand;
  }

  /** The same with the lock that it is about, which the code that threw did not know. */
  about(lockName: string, store: string): this {
    if (this.lockName !== undefined) return this;
    // A copy: one failure may end several calls, each about its own lock.
    const message = `Lock "${lockName}": ${this.message}`;
    const cause = "cause" in this ? { cause: this.cause } : undefined;
    const type = this.constructor as unknown as ErrorKind<this>;
    return remade(type, message, cause, {
      ...this,
      lockName,
      store,
    });
  }

  /** For logs: `JSON.stringify` shows no fields of an error by itself, and takes no `bigint`. */
  toJSON(): Record<string, unknown> {
    const { name, message, cause } = this;
    const shown = cause instanceof Error ? { cause: `${cause.name}: ${cause.message}` } : {};
    return { name, message, ...(jsonOf({ ...this }) as object), ...shown };
  }

  /** Compares brands, so `instanceof` also knows errors of another installed copy. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (typeof value !== "object" || value === null) return false;
    const brands = (value as { [BRAND]?: unknown })[BRAND];
    return Array.isArray(brands) && brands.includes(this.brand);
  }
}

/** A class of errors: its instances, and the text that `instanceof` compares. */
export interface ErrorKind<T extends HoldfastError> {
  readonly prototype: T;
  readonly brand: string;
}

/** An error of this class with these fields, made without its constructor. */
export function remade<T extends HoldfastError>(
  type: ErrorKind<T>,
  message: string,
  cause: { readonly cause: unknown } | undefined,
  fields: object,
): T {
  const error = new Error(message, cause);
  Object.defineProperty(error, BRAND, { value: brandsOf(type) });
  return Object.assign(Object.setPrototypeOf(error, type.prototype), fields);
}

/** The brands of a class and of all classes that it extends. */
function brandsOf(type: { readonly brand: string }): string[] {
  const brands: string[] = [];
  for (let at = type; at.brand !== undefined; at = Object.getPrototypeOf(at)) brands.push(at.brand);
  return brands;
}

/** Returns the result of `check`, and adds the lock to its errors. */
export function aboutLock<T>(lockName: string, store: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof HoldfastError ? error.about(lockName, store) : error;
  }
}
