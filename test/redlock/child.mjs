// How a child process opens the Redlock store: from the build, by a URL.
import { openRedlockStore } from "../../dist/stores/redlock/index.js";

/** @param {string} url */
export function openStore(url) {
  return openRedlockStore(new URL(url));
}
