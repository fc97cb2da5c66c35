export const SLOTS = 16_384;

/** The checksum by which Redis Cluster assigns keys to slots (CRC-16/XMODEM). */
export function crc16(text: string): number {
  let sum = 0;
  for (const byte of Buffer.from(text)) sum = ((sum << 8) ^ tableAt((sum >> 8) ^ byte)) & 0xffff;
  return sum;
}

const table = new Uint16Array(256).map((_, byte) => {
  let value = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) value = value & 0x8000 ? (value << 1) ^ 0x1021 : value << 1;
  return value;
});

function tableAt(index: number): number {
  return table[index & 0xff] ?? 0;
}

/** The slot of a key; where the key has text in braces, the slot of the first such text. */
export function slotOf(key: string): number {
  return crc16(inBraces(key) ?? key) % SLOTS;
}

/** A text that, in braces, puts another key into the slot of this key. */
export function tagOf(key: string): string {
  const tag = inBraces(key) ?? key;
  if (tag !== "" && !tag.includes("}")) return tag;
  // A brace would end the tag. Every slot has a number that belongs to it.
  let number = 0;
  while (slotOf(`${number}`) !== slotOf(key)) number += 1;
  return `${number}`;
}

function inBraces(key: string): string | undefined {
  return /^[^{]*\{([^}]+)\}/.exec(key)?.[1];
}
