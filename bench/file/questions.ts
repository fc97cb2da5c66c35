import type { Question } from "../contest.js";
import { contention } from "./contention.js";
import { crash } from "./crash.js";
import { handoff } from "./handoff.js";
import { startUp } from "./start-up.js";
import { uncontended } from "./uncontended.js";

export const questions: readonly Question[] = [uncontended, handoff, contention, startUp, crash];
