// Opens the file store of the build in a child process of the conformance kit.
import { fileStore } from "../../dist/stores/file/index.js";

/** @param {import("holdfast/file").FileStoreOptions} options */
export function openStore(options) {
  return fileStore(options);
}
