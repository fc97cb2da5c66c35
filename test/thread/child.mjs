// Opens a store in a thread of the build, by URL, in a child process of the conformance kit.
import { openThreadStore } from "../../dist/thread/thread-store.js";

/** @param {string} url */
export function openStore(url) {
  return openThreadStore(url);
}
