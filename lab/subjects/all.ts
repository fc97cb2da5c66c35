import { holdfastStores } from "./holdfast.js";
import { peers } from "./peers.js";
import { rungs } from "./rungs.js";
import type { Subject } from "./subject.js";

export const subjects: readonly Subject[] = [...rungs, ...holdfastStores, ...peers];
