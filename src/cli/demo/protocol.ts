/** What workers and the stage say to each other; tokens travel as strings. */
export type Request =
  | { readonly type: "held"; readonly token: string }
  | { readonly type: "read" }
  | {
      readonly type: "write";
      readonly value: number;
      readonly token: string | null;
      /** What the worker's own lease says at this moment. */
      readonly lease: string | null;
    };

export interface Answer {
  readonly id: number;
  readonly value: number;
}

export const LOCK_NAME = "demo:counter";
export const TTL_MS = 2_000;
