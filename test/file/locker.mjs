// Acquires and releases the mutex "x" in the lock file of its first argument until a message.
import { Holdfast } from "../../dist/index.js";
import { fileStore } from "../../dist/stores/file/index.js";

const locks = new Holdfast(fileStore({ path: process.argv[2] ?? "" }));
let isOver = false;
process.once("message", () => {
  isOver = true;
});
await locks.mutex("x").run(() => {});
process.send?.("begun");
while (!isOver) await locks.mutex("x").run(() => {});
await locks.close();
process.disconnect();
