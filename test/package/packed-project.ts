import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const root: string = join(import.meta.dirname, "../..");

const tsc = join(root, "node_modules/typescript/bin/tsc");
const OFFLINE = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund"];

/** A user's project with the packed package and other installed packages. */
export class PackedProject {
  #folder: string | undefined;

  /** Made when it is first used: hooks that remove it do not run where all tests are skipped. */
  get folder(): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), "holdfast-consumer-"));
    return this.#folder;
  }

  /** Installs the packed package and empty packages that have only a name and a version. */
  install(others: Readonly<Record<string, string>> = {}): void {
    const tarball = run(process.execPath, [join(root, "scripts/pack.mjs"), this.folder], root);
    for (const [name, version] of Object.entries(others)) {
      this.write(`others/${name}/package.json`, JSON.stringify({ name, version }));
    }
    const files = Object.keys(others).map((name) => [name, `file:others/${name}`]);
    const dependencies = { ...Object.fromEntries(files), holdfast: `file:${tarball.trim()}` };
    this.write("package.json", JSON.stringify({ name: "consumer", private: true, dependencies }));
    this.run("npm", ["install", ...OFFLINE]);
  }

  write(name: string, text: string): void {
    const file = join(this.folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Type-checks with the libraries of a browser project: no disposable, no Node types. */
  compile(files: readonly string[], options: Readonly<Record<string, unknown>>): void {
    const compilerOptions = {
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      strict: true,
      skipLibCheck: false,
      rootDir: ".",
      outDir: "out",
      ...options,
    };
    this.write("tsconfig.json", JSON.stringify({ compilerOptions, files }));
    this.run(process.execPath, [tsc]);
  }

  run(command: string, args: readonly string[]): string {
    return run(command, args, this.folder);
  }

  node(...args: readonly string[]): string {
    return this.run(process.execPath, args).trim();
  }

  remove(): void {
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
  }
}

function run(command: string, args: readonly string[], cwd: string): string {
  try {
    return execFileSync(command, args, { cwd, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}
