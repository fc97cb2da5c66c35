import { closeSync, openSync, readSync } from "node:fs";
import { systemCode } from "./system-code.js";

/** The first bytes of a file; undefined when it is missing. */
export function readStart(path: string, length: number): Buffer | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return undefined;
  }
  try {
    const bytes = Buffer.alloc(length);
    return bytes.subarray(0, readSync(descriptor, bytes, 0, length, 0));
  } finally {
    closeSync(descriptor);
  }
}
