// Runs before each test file, in its process: what the file leaves behind is known by its name.
import { relative } from "node:path";
import { expect } from "vitest";
import { ownFolder } from "./leftovers.mjs";

ownFolder(relative(process.cwd(), expect.getState().testPath ?? ""));
