/** The message of a worker to the demonstration; tokens travel as strings. */
export type Request =
  | { readonly type: "held"; readonly token: string }
  | { readonly type: "read" }
  | {
      readonly type: "write";
      readonly value: number;
      readonly token: string | null;
      /** The state of the worker's own lease at this moment. */
      readonly lease: string | null;
    };

export interface Answer {
  readonly id: number;
  readonly value: number;
}

export const LOCK_NAME = "demo:counter";
export const TTL_MS = 2_000;
