/** The dashboard in Next and in Nest, which are large: they are fetched for the full run alone. */

import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, it, type TestContext } from "vitest";
import { isFull } from "../fixtures/depth.js";
import { MountedDashboard } from "../fixtures/mounted-dashboard.js";

const TIMEOUT_MS = 600_000;
const run = promisify(execFile);

/** A folder with packages from npm. */
class FetchedPackages implements Disposable {
  readonly folder: string = mkdtempSync(join(tmpdir(), "holdfast-mounts-"));
  readonly load: NodeJS.Require = createRequire(join(this.folder, "package.json"));

  write(name: string, text: string): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true });
    writeFileSync(join(this.folder, name), text);
  }

  /** Skips the test where npm cannot be reached. */
  async install(context: TestContext, ...packages: readonly string[]): Promise<void> {
    this.write("package.json", JSON.stringify({ name: "mounts", private: true }));
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund"];
    const installed = run("npm", ["install", ...quiet, ...packages], { cwd: this.folder });
    await installed.catch((error: unknown) => context.skip(`no packages: ${error}`));
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The handler of this process: Next compiles its route into a module of its own. */
const ROUTE = `
const handle = (request) => globalThis.holdfastBoard.handle(request);
export const GET = handle;
export const POST = handle;
`;
const LAYOUT = `
import { createElement } from "react";
export default ({ children }) =>
  createElement("html", null, createElement("body", null, children));
`;

describe.runIf(isFull)("the dashboard is served by", () => {
  it("a route handler of Next", { timeout: TIMEOUT_MS }, async (context) => {
    await using mounted = new MountedDashboard();
    using packages = new FetchedPackages();
    await packages.install(context, "next@16", "react@19", "react-dom@19");
    packages.write("app/layout.js", LAYOUT);
    packages.write("next.config.mjs", "export default { skipTrailingSlashRedirect: true };");
    packages.write("app/locks/[[...path]]/route.js", ROUTE);
    const { folder: dir, load } = packages;
    const env = { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" };
    const cli = load.resolve("next/dist/bin/next");
    await run(process.execPath, [cli, "build"], { cwd: dir, env });
    Object.assign(globalThis, { holdfastBoard: mounted.board });
    const app = load("next")({ dev: false, dir });
    await app.prepare();
    const server = createServer(app.getRequestHandler()).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    try {
      await mounted.expectServed((server.address() as AddressInfo).port);
    } finally {
      server.closeAllConnections();
      server.close();
      await app.close();
    }
  });

  it("Nest on Express", { timeout: TIMEOUT_MS }, async (context) => {
    await using mounted = new MountedDashboard();
    using packages = new FetchedPackages();
    const nest = ["core", "common", "platform-express"].map((name) => `@nestjs/${name}@11`);
    await packages.install(context, ...nest, "rxjs@7", "reflect-metadata@0.2");
    const { load } = packages;
    load("reflect-metadata");
    const { NestFactory } = load("@nestjs/core");
    const { Module } = load("@nestjs/common");
    class Root {}
    Module({})(Root);
    const app = await NestFactory.create(Root, { logger: false });
    app.use("/locks", mounted.board.handleNode);
    await app.listen(0, "127.0.0.1");
    try {
      await mounted.expectServed((app.getHttpServer().address() as AddressInfo).port);
    } finally {
      app.getHttpServer().closeAllConnections();
      await app.close();
    }
  });
});
