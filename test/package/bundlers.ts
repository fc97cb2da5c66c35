/** The bundlers of the tests: each puts a program into a folder. */
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import commonjsPlugin from "@rollup/plugin-commonjs";
import jsonPlugin from "@rollup/plugin-json";
import { nodeResolve } from "@rollup/plugin-node-resolve";
import { type BuildOptions, build as esbuild } from "esbuild";
import { rolldown } from "rolldown";
import { type Plugin, rollup } from "rollup";
import { build as vite } from "vite";
import webpack from "webpack";

export interface Bundled {
  /** The file to start. */
  readonly file: string;
  /** Warnings, except those of a package that is not installed. */
  readonly warnings: readonly string[];
}

export type Bundler = (program: string, folder: string) => Promise<Bundled>;

/** Clients in CommonJS call `require`, which an ES module lacks. */
const REQUIRE = `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);`;

const byEsbuild =
  (options: BuildOptions): Bundler =>
  async (program, folder) => {
    const isModule = options.format === "esm";
    const extension = isModule ? ".mjs" : ".cjs";
    const { warnings } = await esbuild({
      entryPoints: [program],
      bundle: true,
      platform: "node",
      outdir: folder,
      outExtension: { ".js": extension },
      logLevel: "silent",
      ...(isModule && { banner: { js: REQUIRE } }),
      ...options,
    });
    return { file: `program${extension}`, warnings: warnings.map(({ text }) => text) };
  };

const byWebpack =
  (options: webpack.Configuration, file: string): Bundler =>
  async (entry, path) => {
    const stats = await new Promise<webpack.Stats | undefined>((resolve, reject) => {
      const optimization = { minimize: false };
      const common = { mode: "production", target: "node", entry, optimization } as const;
      const output = { ...options.output, path, filename: file };
      webpack({ ...common, ...options, output }, (error, result) =>
        error ? reject(error) : resolve(result),
      );
    });
    const { errors = [], warnings = [] } = stats?.toJson({ errors: true, warnings: true }) ?? {};
    if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"));
    return { file, warnings: others(warnings.map(({ message }) => message)) };
  };

const ENTRY = { format: "esm", entryFileNames: "program.mjs" } as const;

// Their types are those of CommonJS, the modules are not.
const [commonjs, json] = [commonjsPlugin, jsonPlugin] as unknown as [() => Plugin, () => Plugin];

const byRollup: Bundler = async (input, dir) => {
  const warnings: string[] = [];
  const bundle = await rollup({
    input,
    plugins: [
      nodeResolve({ exportConditions: ["node"], preferBuiltins: true }),
      commonjs(),
      json(),
    ],
    // The clients have circular imports.
    onwarn: ({ code, message }) => {
      if (code !== "CIRCULAR_DEPENDENCY") warnings.push(message);
    },
  });
  await bundle.write({ dir, ...ENTRY });
  await bundle.close();
  return { file: "program.mjs", warnings: others(warnings) };
};

const byRolldown: Bundler = async (input, dir) => {
  const warnings: string[] = [];
  const bundle = await rolldown({
    input,
    platform: "node",
    onLog: (_level, { message }) => warnings.push(message),
  });
  await bundle.write({ dir, ...ENTRY });
  await bundle.close();
  return { file: "program.mjs", warnings: others(warnings) };
};

/** Vite leaves packages out of a bundle for servers unless it is told to take all. */
const byVite: Bundler = async (program, outDir) => {
  await vite({
    configFile: false,
    logLevel: "silent",
    ssr: { noExternal: true },
    build: { ssr: program, outDir, rolldownOptions: { output: ENTRY } },
  });
  return { file: "program.mjs", warnings: [] };
};

const byNcc: Bundler = async (program, folder) => {
  const ncc = createRequire(import.meta.url).resolve("@vercel/ncc/dist/ncc/cli.js");
  const args = [ncc, "build", program, "--out", folder, "--no-cache", "--quiet"];
  // It takes the TypeScript of its working folder, of which it does not know the newest.
  execFileSync(process.execPath, args, { cwd: dirname(program), stdio: "pipe" });
  return { file: "index.mjs", warnings: [] };
};

const MODULE = { experiments: { outputModule: true }, output: { module: true } };

export const BUNDLERS: Readonly<Record<string, Bundler>> = {
  esbuild: byEsbuild({ format: "cjs" }),
  "esbuild, as ES modules": byEsbuild({ format: "esm" }),
  "esbuild, split into chunks": byEsbuild({ format: "esm", splitting: true }),
  webpack: byWebpack({}, "program.cjs"),
  "webpack, as ES modules": byWebpack(MODULE, "program.mjs"),
  rollup: byRollup,
  rolldown: byRolldown,
  "Vite for servers": byVite,
  ncc: byNcc,
};

function others(warnings: readonly string[]): readonly string[] {
  const isMissing = /Can't resolve|could not be resolved|Could not resolve/;
  return warnings.filter((text) => !isMissing.test(text));
}
