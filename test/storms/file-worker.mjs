// Appends to a log under one lock, as fast as possible, until a message ends it. Each entry is one
// write: the next number, and the token. Two holders at the same time would write a number twice.
import { appendFileSync, closeSync, fstatSync, openSync, readSync } from "node:fs";
import { Holdfast } from "../../dist/index.js";
import { fileStore } from "../../dist/stores/file/index.js";

const [path = "", log = "", ttl = "1000", contenders = "2"] = process.argv.slice(2);
const locks = new Holdfast(fileStore({ path }), { ttlMs: Number(ttl) });
const reader = openSync(log, "a+");
const WIDTH = 32;
let isEnding = false;

function lastNumber() {
  const { size } = fstatSync(reader);
  if (size === 0) return 0;
  const entry = Buffer.alloc(WIDTH);
  readSync(reader, entry, 0, WIDTH, size - WIDTH);
  return Number(entry.toString().split(" ")[0]);
}

async function work() {
  while (!isEnding) {
    await locks.mutex("storm").run((lease) => {
      const number = lastNumber() + 1;
      lease.assertHeld();
      appendFileSync(log, `${`${number} ${lease.token}`.padEnd(WIDTH - 1)}\n`);
    });
  }
}

process.once("message", () => {
  isEnding = true;
});
const ended = Array.from({ length: Number(contenders) }, work);
process.send?.("started");
try {
  await Promise.all(ended);
} finally {
  await locks.close();
  closeSync(reader);
  process.disconnect?.();
}
