import { fileURLToPath } from "node:url";
import type { Store } from "../../contract/store.js";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { StoreUrl } from "../store-url.js";
import { fileStore } from "./file-store.js";

/** `file:` is the default file; `file:/folder/locks.db?namespace=x` names one. */
export function openFileStore(url: URL): Store {
  if (url.host !== "") {
    throw new InvalidOptionError("url", url.host, "must name no host: file:/folder/locks.db");
  }
  const read = new StoreUrl(url, { parameters: ["namespace"], isSecure: null });
  const namespace = read.text("namespace") ?? "";
  // `new URL` makes "file:" into "file:///": no file of that name can exist.
  if (url.pathname === "/") return fileStore({ namespace });
  return fileStore({ path: pathOf(url), namespace });
}

function pathOf({ pathname }: URL): string {
  try {
    return fileURLToPath(`file://${pathname}`);
  } catch {
    throw invalidValue("url", "(hidden)", "must have no encoded / in its path");
  }
}
