import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Workshop } from "./command-line.js";

describe("a store that cannot be used: exit code 69 and advice", () => {
  it("a corrupt file", async () => {
    await using shop = new Workshop();
    writeFileSync(shop.path("locks.db"), "this is no lock file ".repeat(500), { mode: 0o600 });
    const { code, stderr } = await shop.run(["run", "x", "--", "touch", "ran"]);
    expect(stderr).toContain("locks.db");
    expect(stderr).toMatch(/remove|delete|move/i);
    expect(code).toBe(69);
    expect(shop.read("ran")).toBe("");
  });

  // Root may write to every folder of a disk, but not to the folders of the kernel.
  it.skipIf(!existsSync("/sys/kernel"))("an unwritable folder (needs /sys)", async () => {
    await using shop = new Workshop();
    const env = { HOLDFAST_STORE: "file:/sys/holdfast/locks.db" };
    const { code, stderr } = await shop.run(["run", "x", "--", "true"], { env });
    expect(stderr).toContain("/sys/holdfast");
    expect(code).toBe(69);
  });

  it("a folder that cannot be created", async () => {
    await using shop = new Workshop();
    writeFileSync(shop.path("file"), "");
    const env = { HOLDFAST_STORE: `file:${shop.path("file/below/locks.db")}` };
    const { code, stderr } = await shop.run(["run", "x", "--", "true"], { env });
    expect(stderr).toContain("file/below");
    expect(code).toBe(69);
  });

  // No server of the tests listens on a port this low.
  it.concurrent.each([
    "redis://127.0.0.1:7",
    "redlock://127.0.0.1:7,127.0.0.1:9",
    "etcd://127.0.0.1:7",
  ])(
    "no server at %s",
    async (url) => {
      await using shop = new Workshop();
      const env = { HOLDFAST_STORE: url };
      const { code, stderr } = await shop.run(["run", "-n", "x", "--", "touch", "ran"], { env });
      expect(stderr).toContain("connect ECONNREFUSED 127.0.0.1:7");
      expect(code).toBe(69);
      expect(shop.read("ran")).toBe("");
      const list = await shop.run(["list"], { env });
      expect(list.stderr).toContain("connect ECONNREFUSED 127.0.0.1:7");
      expect(list.code).toBe(69);
    },
    40_000,
  );

  it("a path that is a folder", async () => {
    await using shop = new Workshop();
    mkdirSync(shop.path("locks.db"));
    const { code, stderr } = await shop.run(["run", "x", "--", "true"]);
    expect(stderr).toContain("locks.db");
    expect(code).toBe(69);
  });
});
