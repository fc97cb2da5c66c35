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
/** Drawn for many ids at a time: to ask the system for each would be most of its price. */
const pool = Buffer.alloc(256 * ID_BYTES);
let poolAt = pool.length;

function drawId(): string {
  if (poolAt === pool.length) {
    crypto().randomFillSync(pool);
    poolAt = 0;
  }
  poolAt += ID_BYTES;
  return pool.toString("hex", poolAt - ID_BYTES, poolAt);
}

export const systemRandom: Random = {
  id: drawId,
  fraction: () => Math.random(),
};
