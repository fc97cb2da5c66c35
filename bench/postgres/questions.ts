import type { Question } from "../contest.js";
import { handoff, handoffRelaxed } from "./handoff.js";
import { manyNames } from "./many-names.js";
import { oneName } from "./one-name.js";
import { uncontended, uncontendedRelaxed } from "./uncontended.js";

export const questions: readonly Question[] = [
  uncontended,
  uncontendedRelaxed,
  manyNames,
  handoff,
  handoffRelaxed,
  oneName,
];
