// How a process of its own opens the file store: from the build, as plain node runs it.
import { fileStore } from "../../dist/stores/file/index.js";

/** @param {import("holdfast/file").FileStoreOptions} options */
export function openStore(options) {
  return fileStore(options);
}
