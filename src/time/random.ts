export interface Random {
  /** An id that nobody else will ever draw. */
  id(): string;
  /** A secret of 256 bits, for what must not be guessed. */
  secret(): string;
  /** A number in [0, 1), for spreading retries. */
  fraction(): number;
}

/** Loaded when it is first needed: it is the slowest part of Node to load. */
const crypto = (): typeof import("node:crypto") => process.getBuiltinModule("node:crypto");

export const systemRandom: Random = {
  id: () => crypto().randomUUID(),
  secret: () => crypto().randomBytes(32).toString("base64url"),
  fraction: () => Math.random(),
};
