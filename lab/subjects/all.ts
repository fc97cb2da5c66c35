import { holdfastStores } from "./holdfast.js";
import { peers } from "./peers.js";
import { rungs } from "./rungs.js";
import type { Subject } from "./subject.js";

export const subjects: readonly Subject[] = [...rungs, ...holdfastStores, ...peers];

export function subjectOf(id: string): Subject {
  const found = subjects.find((subject) => subject.id === id);
  if (!found) throw new Error(`no subject ${id}`);
  return found;
}
