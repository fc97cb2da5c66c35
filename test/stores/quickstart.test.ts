/** The programs of the quick start on real servers, from the first request to SIGTERM. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect } from "../../src/index.js";
import { startProcess } from "../faults/process.js";
import { onFreePorts } from "../servers/free-port.js";
import { startPostgres } from "../servers/postgres.js";
import { startRedis } from "../servers/redis.js";
import { waitUntil } from "../servers/wait-until.js";

const root = join(import.meta.dirname, "../..");
const project = mkdtempSync(join(tmpdir(), "holdfast-quickstart-"));
const page = readFileSync(join(root, "docs/quickstart.md"), "utf8");
const programs = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);

const compilerOptions = {
  target: "es2022",
  lib: ["es2023", "esnext.disposable"],
  module: "nodenext",
  strict: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

beforeAll(() => {
  mkdirSync(join(project, "node_modules"));
  symlinkSync(root, join(project, "node_modules/holdfast"));
  for (const name of ["@nestjs", "@types", "express", "ioredis", "pg"]) {
    symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name));
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

function write(file: string, code: string): URL {
  writeFileSync(join(project, file), code);
  return pathToFileURL(join(project, file));
}

/** The program of the page that uses this package. */
function programWith(name: string): string {
  const found = programs.filter((code) => code.includes(`from "${name}"`));
  expect(found).toHaveLength(1);
  return found[0] ?? "";
}

test("Express answers 204, 409 and 500, and ends at SIGTERM", async () => {
  await using redis = await startRedis();
  const program = write("express.mjs", programWith("express"));
  const [server, url] = await onFreePorts(1, async ([port = 0]) => {
    const started = startProcess(program, { env: { REDIS_URL: redis.url, PORT: `${port}` } });
    const origin = `http://127.0.0.1:${port}`;
    await waitUntil(async () => (await fetch(origin)).status === 404, { what: "Express listens" });
    return [started, origin] as const;
  });
  await using _ = server;
  const put = async (): Promise<number> =>
    (await fetch(`${url}/stock/7/12`, { method: "PUT" })).status;

  expect(await put()).toBe(204);
  await using other = await connect(redis.url);
  const lease = await other.mutex("stock:7").acquire();
  expect(await put()).toBe(409);
  await lease.release();
  await redis.pause();
  expect(await put()).toBe(500);
  redis.resume();
  await waitUntil(async () => (await put()) === 204, { what: "Redis answers again" });
  process.kill(server.pid, "SIGTERM");
  expect(await server.exited).toEqual({ code: 0, signal: null });
});

test("Nest writes behind its fence, answers 409, and ends at SIGTERM", async () => {
  await using postgres = await startPostgres();
  await postgres.ask("create table invoice (id text primary key, paid boolean)");
  await postgres.ask("insert into invoice values ('42', false)");
  // The adapter for HTTP is not among the packages of the tests: the controller is called instead.
  const requests = `
const { connect } = await import("holdfast");
const invoices = app.get(InvoicesController);
await invoices.pay("42");
const other = await connect(process.env.DATABASE_URL ?? "");
const lease = await other.mutex("invoice:42").acquire();
const refusal = await invoices.pay("42").catch((error) => error.getStatus());
await lease.release();
await other.close();
process.send?.({ refusal });
process.disconnect?.();
`;
  const code = programWith("@nestjs/core")
    .replace("NestFactory.create(", "NestFactory.createApplicationContext(")
    .replace("await app.listen(3000);", requests);
  expect(code).toContain(requests);
  write("nest.ts", code);
  write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["nest.ts"] }));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc], { cwd: project, stdio: "inherit" });

  const program = pathToFileURL(join(project, "nest.js"));
  await using app = startProcess(program, { env: { DATABASE_URL: postgres.url } });
  expect(await app.receive()).toEqual({ refusal: 409 });
  expect(await postgres.ask("select paid from invoice")).toEqual([{ paid: true }]);
  process.kill(app.pid, "SIGTERM");
  // Nest ends the process by the signal that it handled.
  expect(await app.exited).toEqual({ code: null, signal: "SIGTERM" });
});
