import type { Question } from "../contest.js";
import { oneName } from "./one-name.js";
import { oneStopped, uncontended } from "./uncontended.js";

export const questions: readonly Question[] = [uncontended, oneStopped, oneName];
