import type { Holdfast } from "../api/holdfast.js";

/** The part of a Holdfast that a dashboard uses. */
export type ShownLocks = Pick<Holdfast, "list" | "inspect" | "held" | "revoke" | "examine">;
