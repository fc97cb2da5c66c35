import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { expect, it } from "vitest";

const src = join(import.meta.dirname, "../src");

const ground = "contract errors events options rules time";
const store = `${ground} stores`;
const above = `api lease locks ${ground}`;

/** The folders that each folder of src may import from, besides its own files. */
const MAY_IMPORT: Readonly<Record<string, string>> = {
  rules: "",
  time: "",
  errors: "rules",
  contract: "errors rules time",
  options: "contract errors rules",
  events: "contract errors rules",
  lease: ground,
  locks: `lease ${ground}`,
  families: `families/ledger families/session ${ground}`,
  "families/ledger": `families ${ground}`,
  "families/session": `families ${ground}`,
  stores: ground,
  "stores/memory": `families/ledger ${store}`,
  "stores/file": `families/ledger ${store}`,
  "stores/postgres": `families/ledger ${store}`,
  "stores/redis": `families/ledger stores/redis-client ${store}`,
  "stores/redlock": `families stores/redis-client ${store}`,
  "stores/redis-client": store,
  "stores/etcd": `families/session ${store}`,
  "stores/zookeeper": `families/session ${store}`,
  "stores/open-store":
    "stores/etcd stores/file stores/memory stores/postgres stores/redis stores/redlock " +
    `stores/zookeeper ${store}`,
  thread: `families lease stores/open-store ${ground}`,
  api: `locks lease thread stores/open-store ${ground}`,
  telemetry: ground,
  conformance: above,
  cron: above,
  nest: above,
  dashboard: above,
  fence: `stores/redis-client ${ground}`,
  compat: `stores/redis-client stores/redlock ${ground}`,
  cli: `dashboard stores stores/open-store stores/file stores/postgres ${above}`,
  "index.ts": above,
};

function folderOf(file: string): string {
  if (/^stores\/open-store/.test(file)) return "stores/open-store";
  return /^((?:families|stores)\/[\w-]+(?=\/)|[^/]+)/.exec(file)?.[0] ?? file;
}

it("imports go down only", () => {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => {
    return /\.ts$/.test(file) && !/\.test\.ts$/.test(file);
  });
  const wrong = files.flatMap((file) => {
    const from = folderOf(file);
    const text = readFileSync(join(src, file), "utf8");
    return [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g)]
      .map(([, path = ""]) => posix.join(posix.dirname(file), path))
      .filter((to) => {
        const folder = folderOf(to);
        return folder !== from && !MAY_IMPORT[from]?.split(" ").includes(folder);
      })
      .map((to) => `${file} imports ${to}`);
  });
  expect(files.length).toBeGreaterThan(200);
  expect(wrong).toEqual([]);
});
