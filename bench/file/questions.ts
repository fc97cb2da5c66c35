import type { Question } from "../contest.js";
import { contention } from "./contention.js";
import { handoff } from "./handoff.js";
import { startUp } from "./start-up.js";
import { uncontended } from "./uncontended.js";

export const questions: readonly Question[] = [uncontended, handoff, contention, startUp];
