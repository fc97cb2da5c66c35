import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const execute = promisify(execFile);

export type Language = "Go" | "Java" | "Python";

/** The command that starts the contestants of a language, or why there is none. */
export type Toolchain =
  | { readonly type: "ready"; readonly command: readonly string[] }
  | { readonly type: "missing"; readonly reason: string };

// The compiled file is in bench/build/bench/languages.
const bench = join(import.meta.dirname, "..", "..", "..");
const built = join(bench, "build", "languages");

const builders: Readonly<Record<Language, () => Promise<readonly string[]>>> = {
  Go: async () => {
    const program = join(built, "go-contestants");
    await run("go", ["build", "-mod=mod", "-o", program, "."], join(bench, "languages", "go"));
    return [program];
  },
  Java: async () => {
    const folder = join(bench, "languages", "java");
    const classPath = join(built, "java-class-path");
    const target = join(built, "java");
    const options = [`-DbuildDirectory=${target}`, `-Dmdep.outputFile=${classPath}`];
    await run("mvn", ["-q", "-B", "compile", "dependency:build-classpath", ...options], folder);
    const jars = readFileSync(classPath, "utf8").trim();
    return ["java", "-cp", `${join(target, "classes")}:${jars}`, "Main"];
  },
  Python: async () => {
    const venv = join(built, "python");
    if (!existsSync(venv)) await run("python3", ["-m", "venv", venv], bench);
    const folder = join(bench, "languages", "python");
    await run(join(venv, "bin", "pip"), ["install", "-q", "-r", "requirements.txt"], folder);
    return [join(venv, "bin", "python"), join(folder, "main.py")];
  },
};

const toolchains = new Map<Language, Promise<Toolchain>>();

/** Builds the contestants of a language, once a run; it fetches their packages the first time. */
export function toolchainOf(language: Language): Promise<Toolchain> {
  const known = toolchains.get(language) ?? build(language);
  toolchains.set(language, known);
  return known;
}

async function build(language: Language): Promise<Toolchain> {
  mkdirSync(built, { recursive: true });
  try {
    return { type: "ready", command: await builders[language]() };
  } catch (error) {
    const { message } = error as Error;
    const [reason = ""] = message.split("\n").filter((line) => line.trim() !== "");
    return { type: "missing", reason };
  }
}

async function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  await execute(program, [...args], { cwd, maxBuffer: 2 ** 24 });
}
