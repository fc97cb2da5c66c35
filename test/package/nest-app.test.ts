/** An application of NestJS, compiled with the decorators of TypeScript, and ended by a signal. */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
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

const project = mkdtempSync(join(tmpdir(), "holdfast-nest-"));

beforeAll(() => {
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/holdfast"));
  for (const name of ["@nestjs", "@types", "reflect-metadata", "rxjs"]) {
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  }
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
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: ["app.ts"] }),
  );
  writeFileSync(join(project, "app.ts"), PROGRAM);
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

function run(...args: string[]): string {
  try {
    return execFileSync(process.execPath, args, { cwd: project, encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout, stderr, signal } = error as Record<"stdout" | "stderr" | "signal", string>;
    // Nest ends the process by the signal that it heeded.
    if (signal === "SIGTERM") return stdout;
    throw new Error(`${args.join(" ")} failed:\n${stdout}${stderr}`, { cause: error });
  }
}

it("locks its methods, runs its schedules once, and closes at SIGTERM", () => {
  run(join(root, "node_modules/typescript/bin/tsc"), "--pretty", "false");
  expect(run("app.js").trimEnd().split("\n")).toEqual([
    "invoice:42 bigint most 1 false",
    "runs 2",
    "closing",
  ]);
});
