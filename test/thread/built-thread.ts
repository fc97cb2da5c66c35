import type { Store } from "../../src/contract/store.js";

const built = new URL("../../dist/thread/thread-store.js", import.meta.url);

/** Opens a store in a thread of the build: a thread cannot run the sources. */
export async function openThreadStore(url: string): Promise<Store> {
  const module: typeof import("../../src/thread/thread-store.js") = await import(built.href);
  return module.openThreadStore(url);
}
