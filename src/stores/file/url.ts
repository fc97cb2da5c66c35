import { fileURLToPath } from "node:url";
import { InvalidOptionError, invalidValue } from "../../errors/index.js";
import { StoreUrl } from "../store-url.js";
import type { FileStoreOptions } from "./index.js";

/** `file:` is the default file; `file:/folder/locks.db?namespace=x` names one. */
export function readFileUrl(url: URL): FileStoreOptions {
  if (url.host !== "") {
    throw new InvalidOptionError("url", url.host, "must name no host: file:/folder/locks.db");
  }
  const read = new StoreUrl(url, { parameters: ["namespace"], isSecure: null });
  const namespace = read.text("namespace") ?? "";
  // `new URL` makes "file:" into "file:///": no file of that name can exist.
  if (url.pathname === "/") return { namespace };
  return { path: pathOf(url), namespace };
}

function pathOf({ pathname }: URL): string {
  try {
    return fileURLToPath(`file://${pathname}`);
  } catch {
    throw invalidValue("url", "(hidden)", "must have no encoded / in its path");
  }
}
