/** The live bytes on the heap of this process; needs `--expose-gc`. */
export function heapBytes(): number {
  // Twice: what a finalizer of the first let go is collected by the second.
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
