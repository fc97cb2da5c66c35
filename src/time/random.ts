import { randomBytes, randomUUID } from "node:crypto";

export interface Random {
  /** An id that nobody else will ever draw. */
  id(): string;
  /** A secret of 256 bits, for what must not be guessed. */
  secret(): string;
  /** A number in [0, 1), for spreading retries. */
  fraction(): number;
}

export const systemRandom: Random = {
  id: () => randomUUID(),
  secret: () => randomBytes(32).toString("base64url"),
  fraction: () => Math.random(),
};
