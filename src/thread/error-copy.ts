import {
  ClosedError,
  type ErrorKind,
  type HoldfastError,
  InternalError,
  InvalidOptionError,
  QuorumError,
  ReplicationError,
  remade,
  StoreError,
  UnsupportedError,
} from "../errors/index.js";

/** The errors that stores throw; all others become plain errors with the same text. */
const CLASSES: readonly ErrorKind<HoldfastError>[] = [
  ClosedError,
  InternalError,
  InvalidOptionError,
  QuorumError,
  ReplicationError,
  StoreError,
  UnsupportedError,
];

const BY_NAME = new Map(CLASSES.map((type) => [type.brand, type]));

/** A chain of causes is not followed further. */
const MAX_CAUSES = 8;

/** An error on its way to another thread, which would lose its class and its fields. */
export interface ErrorCopy {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly cause: ErrorCopy | null;
}

export function copyOfError(error: unknown, depth = 0): ErrorCopy {
  if (!(error instanceof Error)) {
    return { name: "Error", message: String(error), stack: undefined, fields: {}, cause: null };
  }
  const { name, message, stack, cause } = error;
  const isLinked = cause !== undefined && cause !== null && depth < MAX_CAUSES;
  return {
    name,
    message,
    stack,
    fields: portable({ ...error }),
    cause: isLinked ? copyOfError(cause, depth + 1) : null,
  };
}

/** The error in this thread: `instanceof`, its code and its fields are as they were. */
export function errorOf({ name, message, stack, fields, cause }: ErrorCopy): Error {
  const why = cause ? { cause: errorOf(cause) } : undefined;
  const type = BY_NAME.get(name);
  const error = type
    ? remade(type, message, why, fields)
    : Object.assign(new Error(message, why), fields);
  if (error.name !== name) Object.defineProperty(error, "name", { value: name });
  if (stack !== undefined) Object.defineProperty(error, "stack", { value: stack });
  return error;
}

/** The fields that can be sent: a client may put its connection into an error. */
function portable(fields: object): Record<string, unknown> {
  const sent: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name === "cause") continue;
    try {
      sent[name] = structuredClone(value);
    } catch {}
  }
  return sent;
}
