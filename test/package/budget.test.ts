import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, it } from "vitest";
import { root } from "./packed-project.js";

/** The files that may be published. */
const PUBLISHED = [
  /^(README|README\.zh-CN|CHANGELOG)\.md$/,
  /^(LICENSE|package\.json)$/,
  /^dist\/([\w-]+\/)*[\w-]+\.(js|d\.ts)$/,
];
const MAX_FILES = 240;
const MAX_BYTES = 1_500_000;

interface Packed {
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

function dryPack(): Packed {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const packed = JSON.parse(execFileSync("npm", args, { cwd: root, encoding: "utf8" }));
  return Object.values(packed)[0] as Packed;
}

/** The bundle of a program with these imports, without code that is loaded on demand. */
async function bundled(...imports: readonly string[]): Promise<string> {
  const entry = imports.map((file) => `export * from ${JSON.stringify(join(root, file))};`);
  const build = await rolldown({
    input: "program",
    platform: "node",
    plugins: [
      {
        name: "program",
        resolveId: (id) => (id === "program" ? id : null),
        load: (id) => (id === "program" ? entry.join("\n") : null),
      },
    ],
    external: ["ioredis", "libsql", "redis"],
    onLog: () => {},
  });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  const chunks = output.filter((file) => file.type === "chunk");
  const loaded = new Set(chunks.filter(({ isEntry }) => isEntry));
  for (const { imports: names } of loaded) {
    for (const chunk of chunks) if (names.includes(chunk.fileName)) loaded.add(chunk);
  }
  return [...loaded].map(({ code }) => code).join("");
}

it("has few files and a moderate size", () => {
  const { files, unpackedSize } = dryPack();
  expect(files.length).toBeLessThanOrEqual(MAX_FILES);
  expect(unpackedSize).toBeLessThanOrEqual(MAX_BYTES);
});

it("publishes exactly the intended files", () => {
  const paths = dryPack().files.map(({ path }) => path);
  expect(paths.filter((path) => !PUBLISHED.some((pattern) => pattern.test(path)))).toEqual([]);
  const unused = PUBLISHED.filter((pattern) => !paths.some((path) => pattern.test(path)));
  expect(unused).toEqual([]);
});

it("adds little to a program that locks in Redis", async () => {
  const code = await bundled("dist/index.js", "dist/stores/redis/index.js");
  // A third of it is the Lua that runs in the server, with its names and lines.
  expect(Buffer.byteLength(code)).toBeLessThanOrEqual(176_000);
  expect(gzipSync(code).length).toBeLessThanOrEqual(57_000);
});

it.each([
  ["index", []],
  ["stores/memory/index", []],
  ["stores/file/index", []],
  ["stores/redis/index", []],
  ["stores/redlock/index", ["crypto"]],
])("loads no slow part of Node before it is needed: %s", (entry, known) => {
  const slow = [
    "child_process",
    "crypto",
    "fs/promises",
    "internal/crypto/webcrypto",
    "net",
    "tls",
  ];
  const program = `
    const before = new Set(process.moduleLoadList);
    await import(${JSON.stringify(new URL(`../../dist/${entry}.js`, import.meta.url))});
    const loaded = process.moduleLoadList.filter((name) => !before.has(name));
    console.log(JSON.stringify(loaded.map((name) => name.replace("NativeModule ", ""))));
  `;
  const args = ["--input-type=module", "--eval", program];
  const loaded = JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" }));
  expect(slow.filter((name) => loaded.includes(name))).toEqual(known);
});
