/**
 * The name of a script in Redis. A static import of `node:crypto` loads all parts of it, also those
 * that no program here uses.
 */
export function sha1(text: string): string {
  const { createHash } = process.getBuiltinModule("node:crypto");
  return createHash("sha1").update(text).digest("hex");
}
