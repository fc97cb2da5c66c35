import { HoldfastError } from "./holdfast-error.js";
import { shown } from "./shown.js";

/** An option or argument that cannot work, found before anything was sent. */
export class InvalidOptionError extends HoldfastError {
  /** {@inheritDoc HoldfastError.brand} */
  static override readonly brand: string = "InvalidOptionError";
  /** {@inheritDoc HoldfastError.code} */
  override readonly code = "HF_INVALID_OPTION";
  /** The name of the option or argument. */
  readonly option: string;
  /** The value as it was given; a description of it where it may be a secret. */
  readonly value: unknown;
  /** The rule that the value breaks, as the end of a sentence: "must be at least 1". */
  readonly rule: string;

  constructor(
    option: string,
    value: unknown,
    rule: string,
    message = `Invalid ${option}: ${shown(value)}. It ${rule}.`,
  ) {
    super(message);
    this.option = option;
    this.value = value;
    this.rule = rule;
  }

  /** The value may be anything, a circle too: it is shown as in the message. */
  override toJSON(): Record<string, unknown> {
    const { name, message, code, lockName, store, option, value, rule } = this;
    return { name, message, code, lockName, store, option, value: shown(value), rule };
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
