import type { Question } from "../contest.js";
import { crash } from "./crash.js";
import { oneName } from "./one-name.js";
import { oneStopped, uncontended } from "./uncontended.js";

export const questions: readonly Question[] = [uncontended, oneStopped, oneName, crash];
