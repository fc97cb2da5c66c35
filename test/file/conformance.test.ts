import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openSqlite } from "../../src/stores/file/client.js";
import { fileStore } from "../../src/stores/file/index.js";
import { runConformance } from "../stores/run-conformance.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));

/** A file per case: a process that stops inside a transaction blocks no other case. */
function pathOf(namespace: string): string {
  return join(folder, `${namespace.slice(0, 13)}.db`);
}

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const LEFT = "SELECT key || ' ' || body FROM name WHERE namespace = ? AND key <> ''";

// SQLite blocks the event loop for as long as a transaction takes.
runConformance(
  {
    traits: fileStore().traits,
    ttlMs: 1_500,
    open: async (namespace) => fileStore({ path: pathOf(namespace), namespace }),
    child: {
      module: new URL("../stores/child.mjs", import.meta.url),
      argument: (namespace) => `file:${pathOf(namespace)}?namespace=${namespace}`,
    },
    async wipe(namespace) {
      const database = openSqlite(pathOf(namespace));
      database.exec("PRAGMA busy_timeout = 1000");
      database.run("DELETE FROM name WHERE namespace = ?", [namespace]);
      database.close();
    },
    async leftovers(namespace) {
      // A name drops expired entries when it is inspected.
      const store = fileStore({ path: pathOf(namespace), namespace });
      for await (const _ of store.list("lock", ""));
      await store.close();
      const database = openSqlite(pathOf(namespace));
      const rows = database.all(LEFT, [namespace]);
      database.close();
      return rows.map(String);
    },
  },
  { concurrency: 8 },
);
