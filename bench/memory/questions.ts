import type { Question } from "../contest.js";
import { heldLeases } from "./held-leases.js";
import { uncontended } from "./uncontended.js";
import { waiters } from "./waiters.js";

export const questions: readonly Question[] = [uncontended, waiters, heldLeases];
