import type { Question } from "../contest.js";
import { handoff } from "./handoff.js";
import { manyNames } from "./many-names.js";
import { uncontended } from "./uncontended.js";

export const questions: readonly Question[] = [uncontended, manyNames, handoff];
