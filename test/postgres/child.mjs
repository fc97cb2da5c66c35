// Opens the Postgres store of the build by URL in a child process of the conformance kit.
import { openPostgresStore } from "../../dist/stores/postgres/index.js";

/** @param {string} url */
export function openStore(url) {
  return openPostgresStore(new URL(url));
}
