/** Programs in other languages that take locks with a library of their own. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const execute = promisify(execFile);
const folder = import.meta.dirname;
/** The packages of the other languages are fetched once. */
const built = join(homedir(), ".cache", "holdfast", "interop");

export type Library = "Curator" | "kazoo" | "redis-py" | "redsync";

const commands: Readonly<Record<Library, () => Promise<readonly string[]>>> = {
  Curator: async () => {
    const classPath = join(built, "curator-class-path");
    const target = join(built, "curator");
    const options = [`-DbuildDirectory=${target}`, `-Dmdep.outputFile=${classPath}`];
    const args = ["-q", "-B", "compile", "dependency:build-classpath", ...options];
    await execute("mvn", args, { cwd: join(folder, "curator") });
    const jars = readFileSync(classPath, "utf8").trim();
    return ["java", "-Xmx128m", "-cp", `${join(target, "classes")}:${jars}`, "Contender"];
  },
  kazoo: () => python("kazoo==2.11.0", "kazoo-contender.py"),
  "redis-py": () => python("redis==8.1.0", "redis-py-contender.py"),
  redsync: async () => {
    const program = join(built, "redsync-contender");
    const args = ["build", "-mod=mod", "-o", program, "."];
    await execute("go", args, { cwd: join(folder, "redsync") });
    return [program];
  },
};

async function python(requirement: string, program: string): Promise<readonly string[]> {
  const environment = join(built, "python");
  if (!existsSync(environment)) await execute("python3", ["-m", "venv", environment]);
  await execute(join(environment, "bin", "pip"), ["install", "-q", requirement]);
  return [join(environment, "bin", "python"), join(folder, program)];
}

/** The command that starts a contender; throws where its tools are not installed. */
export async function commandOf(library: Library): Promise<readonly string[]> {
  mkdirSync(built, { recursive: true });
  return await commands[library]();
}

/** A contender that does what it is told, one word of an answer for each line. */
export class Contender implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #answers: AsyncIterator<string>;

  private constructor(child: ChildProcess, answers: AsyncIterator<string>) {
    this.#child = child;
    this.#answers = answers;
  }

  static async start(command: readonly string[], servers: string): Promise<Contender> {
    const [program = "", ...args] = command;
    const child = spawn(program, [...args, servers], { stdio: ["pipe", "pipe", "ignore"] });
    const lines = createInterface({ input: child.stdout });
    const contender = new Contender(child, lines[Symbol.asyncIterator]());
    await contender.#next();
    return contender;
  }

  async ask(line: string): Promise<string> {
    this.#child.stdin?.write(`${line}\n`);
    return await this.#next();
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
  }

  async #next(): Promise<string> {
    const { value, done } = await this.#answers.next();
    if (done) throw new Error("the contender has ended");
    return value;
  }
}
