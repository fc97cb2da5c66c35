import {
  type Check,
  checksOver,
  type Examination,
  type ExamineRequest,
  note,
} from "../../contract/examination.js";
import { CLIENT_FAILURES, findingsOf } from "../doctor.js";

const check = checksOver<object>();

export const memoryChecks: readonly Check<object>[] = [
  check("memory/scope", [], () =>
    note(
      "The locks are in the memory of this process.",
      "They exclude no other process, and are gone when this one ends.",
      "Use the file store for one machine, and a store across the network for more.",
    ),
  ),
];

export function examineMemory({ ttlMs }: ExamineRequest): Examination {
  return {
    store: "memory",
    findings: findingsOf(memoryChecks, {}, ttlMs),
    failureCases: [
      ...CLIENT_FAILURES.slice(1),
      {
        event: "The process ends",
        outcome: "All locks and marks are gone with it.",
        isSafe: true,
      },
      {
        event: "Another process wants the lock",
        outcome: "It is not excluded: the store is for one process.",
        isSafe: false,
      },
    ],
  };
}
