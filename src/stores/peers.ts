/**
 * The clients that a store opens a URL with: optional peer dependencies, null where one is not
 * installed.
 *
 * Bundlers read these lines. The name is a literal, so a client that is installed goes into the
 * bundle. The `try` around the import makes esbuild and webpack accept one that is missing; both
 * look only at the function itself, so no caller can share the `try`.
 */
export async function importPg<Module>(): Promise<Module | null> {
  try {
    return exportsOf<Module>(await import("pg" as string));
  } catch {
    return null;
  }
}

export async function importPostgres<Module>(): Promise<Module | null> {
  try {
    return exportsOf<Module>(await import("postgres" as string));
  } catch {
    return null;
  }
}

export async function importIoredis<Module>(): Promise<Module | null> {
  try {
    return exportsOf<Module>(await import("ioredis" as string));
  } catch {
    return null;
  }
}

export async function importRedis<Module>(): Promise<Module | null> {
  try {
    return exportsOf<Module>(await import("redis" as string));
  } catch {
    return null;
  }
}

export async function importIovalkey<Module>(): Promise<Module | null> {
  try {
    return exportsOf<Module>(await import("iovalkey" as string));
  } catch {
    return null;
  }
}

/**
 * Some bundlers give the exports of CommonJS only as the default. Next puts an empty module in the
 * place of an optional peer that is missing.
 */
function exportsOf<Module>(module: { readonly default?: Module } & object): Module | null {
  const exports = module.default ?? (module as Module);
  const isEmpty = typeof exports === "object" && Object.keys(exports as object).length === 0;
  return isEmpty ? null : exports;
}

/**
 * A package with a native library, which no bundle can contain. It is looked for from this file,
 * then from the program: a bundler may have written down where this file was when it was bundled.
 */
export function requireNative(name: string): unknown {
  try {
    return requireFrom(import.meta.url, name);
  } catch (error) {
    const [, program] = process.argv;
    try {
      if (program) return requireFrom(program, name);
    } catch {
      // The first failure says more.
    }
    throw error;
  }
}

function requireFrom(from: string, name: string): unknown {
  return process.getBuiltinModule("node:module").createRequire(from)(name);
}
