/** Randomness of the system, or of a seed in the simulation. */
export interface Random {
  /** An id of 128 bits: no two draws are ever the same, and no other process can guess one. */
  id(): string;
  /** A number in [0, 1), for spreading retries. */
  fraction(): number;
}

/** Loaded when it is first needed: it is the slowest part of Node to load. */
const crypto = (): typeof import("node:crypto") => process.getBuiltinModule("node:crypto");

const ID_BYTES = 16;
const ID_LENGTH = 2 * ID_BYTES;
/**
 * Written as text for several ids at a time. Not for more of them: an id is a part of this text, so
 * one id that is kept keeps the text.
 */
export const TEXT_BYTES: number = 16 * ID_BYTES;
/** Drawn for many ids at a time: to ask the system for each would be most of its price. */
const pool = Buffer.alloc(16 * TEXT_BYTES);
let poolAt = pool.length;

function drawText(): string {
  if (poolAt === pool.length) {
    crypto().randomFillSync(pool);
    poolAt = 0;
  }
  poolAt += TEXT_BYTES;
  return pool.toString("hex", poolAt - TEXT_BYTES, poolAt);
}

/** Cuts ids from texts of `TEXT_BYTES` bytes in hexadecimal digits. */
export function idsOf(draw: () => string): () => string {
  let text = "";
  let at = 0;
  return () => {
    if (at === text.length) {
      text = draw();
      at = 0;
    }
    at += ID_LENGTH;
    return text.slice(at - ID_LENGTH, at);
  };
}

export const systemRandom: Random = {
  id: idsOf(drawText),
  fraction: () => Math.random(),
};
