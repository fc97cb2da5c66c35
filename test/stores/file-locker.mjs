// Acquires and releases the mutex "x" in the lock file of its first argument in a loop.
import { Holdfast } from "../../dist/index.js";
import { fileStore } from "../../dist/stores/file/index.js";

const mutex = new Holdfast(fileStore({ path: process.argv[2] ?? "" })).mutex("x");
await (await mutex.acquire()).release();
process.send?.("begun");
for (;;) await (await mutex.acquire()).release();
