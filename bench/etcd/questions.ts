import type { Question } from "../contest.js";
import { crash } from "./crash.js";
import { footprint } from "./footprint.js";
import { handoff } from "./handoff.js";
import { manyNames } from "./many-names.js";
import { uncontended } from "./uncontended.js";
import { waiters } from "./waiters.js";

export const questions: readonly Question[] = [
  uncontended,
  manyNames,
  handoff,
  waiters,
  footprint,
  crash,
];
