/** Changes the newest snapshot of a ZooKeeper server that is not running. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** With these properties a snapshot has one checksum, at its end. */
export const PATCHABLE: readonly string[] = [
  "zookeeper.digest.enabled=false",
  "zookeeper.serializeLastProcessedZxid.enabled=false",
];

const LENGTH_BYTES = 4;
/** The id of the access list, four times of the znode, and the version of its data. */
const BEFORE_COUNTER_BYTES = 5 * 8 + 4;
/** The checksum as 8 bytes, and the text "/" behind its length. */
const SEAL_BYTES = 8 + LENGTH_BYTES + 1;

/**
 * Sets the number of children that were ever made below a znode, which is the sequence number of
 * the next one. `folder`: the data of the server, which has started with the znode before: it
 * writes a snapshot when it starts.
 */
export function setChildCounter(folder: string, path: string, counter: number): void {
  const file = join(folder, "version-2", newestSnapshot(join(folder, "version-2")));
  const bytes = readFileSync(file);
  const key = Buffer.alloc(LENGTH_BYTES + Buffer.byteLength(path));
  key.writeInt32BE(Buffer.byteLength(path));
  key.write(path, LENGTH_BYTES);
  const at = bytes.indexOf(key);
  if (at < 0) throw new Error(`no znode ${path} in ${file}`);
  const dataAt = at + key.length;
  const dataBytes = Math.max(0, bytes.readInt32BE(dataAt));
  bytes.writeInt32BE(counter, dataAt + LENGTH_BYTES + dataBytes + BEFORE_COUNTER_BYTES);
  const sealAt = bytes.length - SEAL_BYTES;
  bytes.writeBigInt64BE(adler32(bytes.subarray(0, sealAt)), sealAt);
  writeFileSync(file, bytes);
}

function newestSnapshot(folder: string): string {
  const zxids = readdirSync(folder).flatMap(
    (name) => /^snapshot\.([0-9a-f]+)$/.exec(name)?.[1] ?? [],
  );
  zxids.sort((a, b) => Number.parseInt(b, 16) - Number.parseInt(a, 16));
  if (zxids[0] === undefined) throw new Error(`no snapshot in ${folder}`);
  return `snapshot.${zxids[0]}`;
}

function adler32(bytes: Buffer): bigint {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  return (BigInt(b) << 16n) | BigInt(a);
}
