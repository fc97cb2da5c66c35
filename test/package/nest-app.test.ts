/**
 * An application of NestJS, compiled with the decorators of TypeScript, and ended by a signal: with
 * the installed version, and in the full run with the one before, which it downloads.
 */

import { execFileSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { root } from "./packed-project.js";

const PROGRAM = `
import "reflect-metadata";
import { Controller, Get, Injectable, Module, Param } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Cron, ScheduleModule } from "@nestjs/schedule";
import { Holdfast } from "holdfast";
import { currentLease, HoldfastModule, InjectHoldfast, Locked, Once } from "holdfast/nest";

let atWork = 0;
let most = 0;

@Injectable()
class Invoices {
  // The first is injected by its type, which the compiler writes down.
  constructor(readonly locks: Holdfast, @InjectHoldfast("audit") readonly audit: Holdfast) {}

  @Locked((id: string) => \`invoice:\${id}\`, { waitMs: 30_000 })
  async pay(id: string): Promise<string> {
    atWork += 1;
    most = Math.max(most, atWork);
    await new Promise((resolve) => setTimeout(resolve, 20));
    atWork -= 1;
    return \`\${currentLease()?.name} \${typeof currentLease()?.token}\`;
  }
}

let runs = 0;
let told = (): void => {};
const ran = new Promise<void>((resolve) => {
  told = resolve;
});

@Injectable()
class Reports {
  // Whichever decorator stands first.
  @Cron("* * * * * *")
  @Once("first", { keepMs: 3_600_000, holdfast: "audit" })
  async first(): Promise<void> {
    runs += 1;
  }

  @Once(() => "second", { keepMs: 3_600_000 })
  @Cron("* * * * * *")
  async second(): Promise<void> {
    runs += 1;
  }

  #calls = 0;

  @Cron("* * * * * *")
  async count(): Promise<void> {
    this.#calls += 1;
    if (this.#calls > 2) told();
  }
}

@Module({ providers: [Invoices], exports: [Invoices] })
class Feature {}

@Module({
  imports: [
    Feature,
    ScheduleModule.forRoot(),
    HoldfastModule.forRoot({ url: "memory:shared", defaults: { ttlMs: 10_000 } }),
    HoldfastModule.forRootAsync({ name: "audit", useFactory: () => ({ url: "memory:audit" }) }),
  ],
  providers: [Reports],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error"] });
app.enableShutdownHooks();
const invoices = app.get(Invoices);
const paid = await Promise.all([1, 2, 3].map(() => invoices.pay("42")));
console.log(paid[0], "most", most, invoices.locks === invoices.audit);
await ran;
console.log("runs", runs);
const lease = await invoices.locks.mutex("held").acquire();
lease.signal.addEventListener("abort", () => console.log("closing"));
process.kill(process.pid, "SIGTERM");
`;

const NEST_11 = ["@nestjs/common@11", "@nestjs/core@11", "@nestjs/schedule@6"];
const OTHERS = ["@types", "reflect-metadata", "rxjs"];

const compilerOptions = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  module: "nodenext",
  types: ["node"],
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

const VERSIONS = [
  { version: 12, isInstalled: true },
  ...(isFull ? [{ version: 11, isInstalled: false }] : []),
];

describe.each(VERSIONS)("NestJS $version", ({ version, isInstalled }) => {
  let project: string;
  const link = (name: string): void =>
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));

  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "holdfast-nest-"));
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  function run(program: string, ...args: string[]): string {
    try {
      return execFileSync(program, args, { cwd: project, encoding: "utf8", stdio: "pipe" });
    } catch (error) {
      const { stdout, stderr, signal } = error as Record<"stdout" | "stderr" | "signal", string>;
      // Nest ends the process by the signal that it heeded.
      if (signal === "SIGTERM") return stdout;
      throw new Error(`${program} ${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
    }
  }

  /** The package is copied, so that it finds the NestJS of this project. */
  function install(): void {
    writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund"];
    if (isInstalled) mkdirSync(join(project, "node_modules"));
    else run("npm", "install", ...quiet, ...NEST_11, "reflect-metadata", "rxjs", "@types/node@20");
    for (const name of isInstalled ? ["@nestjs", ...OTHERS] : []) link(name);
    const copy = join(project, "node_modules/holdfast");
    for (const name of ["dist", "package.json"]) {
      cpSync(join(root, name), join(copy, name), { recursive: true });
    }
  }

  it("locks its methods, runs its schedules once, and closes at SIGTERM", () => {
    install();
    const tsconfig = JSON.stringify({ compilerOptions, files: ["app.ts"] });
    writeFileSync(join(project, "tsconfig.json"), tsconfig);
    writeFileSync(join(project, "app.ts"), PROGRAM);
    const manifest = readFileSync(join(project, "node_modules/@nestjs/core/package.json"), "utf8");
    expect(JSON.parse(manifest).version).toMatch(new RegExp(`^${version}\\.`));
    run(process.execPath, join(root, "node_modules/typescript/bin/tsc"), "--pretty", "false");
    expect(run(process.execPath, "app.js").trimEnd().split("\n")).toEqual([
      "invoice:42 bigint most 1 false",
      "runs 2",
      "closing",
    ]);
  });
});
