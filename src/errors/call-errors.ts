import type { Space } from "../rules/name.js";
import { type ErrorContext, HoldfastError } from "./holdfast-error.js";

/** The store cannot do this; the message says which can. */
export class UnsupportedError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "UnsupportedError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_UNSUPPORTED";
}

const AROUND: Record<Space, string> = { lock: "run", election: "lead", once: "once" };

/** The call would wait for the `run`, `lead` or `once` that it is made in. */
export class DeadlockError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "DeadlockError";
  /** {@inheritDoc HoldfastError.code} */
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
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "ClosedError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_CLOSED";

  constructor(context: ErrorContext = {}) {
    super("This Holdfast is closed: make a new one, or close it later.", context);
  }
}
