import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Compiles test programs and their imports for plain node, so that no loader runs in a process
 * under test. Returns their URLs.
 */
export async function compile(files: readonly URL[], folder: string): Promise<URL[]> {
  const paths = files.map((file) => fileURLToPath(file));
  const compilerOptions = {
    noEmit: false,
    // Another step checks the types of the project.
    noCheck: true,
    declaration: false,
    isolatedDeclarations: false,
    typeRoots: [join(root, "node_modules/@types")],
    rootDir: root,
    outDir: folder,
  };
  const config = {
    extends: join(root, "tsconfig.json"),
    compilerOptions,
    files: paths,
    include: [],
  };
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [tsc, "--project", folder]);
  return paths.map((path) =>
    pathToFileURL(join(folder, relative(root, path).replace(/\.ts$/, ".js"))),
  );
}
