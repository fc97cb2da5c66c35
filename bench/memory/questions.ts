import type { Question } from "../contest.js";
import { footprint } from "./footprint.js";
import { heldLeases } from "./held-leases.js";
import { uncontended } from "./uncontended.js";
import { waiters } from "./waiters.js";

export const questions: readonly Question[] = [uncontended, waiters, footprint, heldLeases];
