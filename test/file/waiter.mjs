// Waits for the mutex "x" in the lock file of its first argument.

import { Holdfast } from "../../dist/index.js";
import { fileStore } from "../../dist/stores/file/index.js";

const locks = new Holdfast(fileStore({ path: process.argv[2] ?? "" }));
await locks.mutex("x").acquire();
process.send?.("granted");
