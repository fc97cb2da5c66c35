import { HoldfastError } from "./holdfast-error.js";

/** Holdfast broke one of its own rules: a bug of this package, or a store that lies about time. */
export class InternalError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "InternalError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_INTERNAL";
  /** The rule that did not hold. */
  readonly rule: string;

  constructor(rule: string) {
    super(
      `Holdfast found one of its own rules broken: ${rule}. ` +
        "Only this call or lease ends; report it as a bug, with the stack of this error.",
    );
    this.rule = rule;
  }
}
