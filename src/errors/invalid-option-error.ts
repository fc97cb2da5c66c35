import { HoldfastError } from "./holdfast-error.js";
import { shown } from "./shown.js";

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
