import { MemorySpace, memoryStore } from "../../src/stores/memory/index.js";
import { runConformance } from "../stores/run-conformance.js";

const spaces = new Map<string, MemorySpace>();

function spaceOf(namespace: string): MemorySpace {
  const space = spaces.get(namespace) ?? new MemorySpace();
  spaces.set(namespace, space);
  return space;
}

runConformance({
  traits: memoryStore().traits,
  open: async (namespace) => memoryStore({ space: spaceOf(namespace) }),
  child: { module: new URL("../stores/child.mjs", import.meta.url), argument: () => "memory:" },
  async leftovers(namespace) {
    const space = spaceOf(namespace);
    // A name drops expired entries when it is inspected.
    space.list("");
    return Array.from({ length: space.size }, () => "a name");
  },
});
