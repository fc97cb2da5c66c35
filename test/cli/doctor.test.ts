import { chmodSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { onFreePorts } from "../servers/free-port.js";
import { Workshop } from "./command-line.js";

it("shows each check, the failure cases, and a summary", async () => {
  await using shop = new Workshop();
  const { code, stdout, stderr } = await shop.run(["doctor", "--ttl", "6s"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^\[ok\] {6}file\/sqlite: SQLite 3\.\d+/);
  expect(stdout).toMatch(
    /\n\[note\] {4}file\/header: \S+ does not exist yet\.\n {10}Why: The first/,
  );
  expect(stdout).toMatch(/\n\[(ok|note)\] +process\/event-loop: /);
  expect(stdout).toContain("\nFailures of this file store, with a ttl of 6s:\n[safe]    A holder");
  expect(stdout).toMatch(/\[unsafe\] {2}The file is deleted or replaced: .* for up to 2 s/);
  expect(stdout).toMatch(/\n\d (note|warning)s?.*\.\n$/);
});

it("prints one line of JSON", async () => {
  await using shop = new Workshop();
  const { code, stdout } = await shop.run(["doctor", "--json", "--store", "memory:"]);
  expect(code).toBe(0);
  expect(stdout.trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(stdout)).toMatchObject({
    store: "memory",
    findings: [{ id: "memory/scope", severity: "note" }, { id: "process/event-loop" }],
    failureCases: expect.arrayContaining([expect.objectContaining({ isSafe: false })]),
  });
});

it("ends with 1 for a danger, and with --strict for a warning", async () => {
  await using shop = new Workshop();
  chmodSync(shop.folder, 0o777);
  const warned = await shop.run(["doctor"]);
  expect(warned.stdout).toContain("[warning] file/owner: ");
  expect(warned.code).toBe(0);
  expect((await shop.run(["doctor", "--strict"])).code).toBe(1);
  chmodSync(shop.folder, 0o700);
  writeFileSync(shop.path("locks.db"), "a letter to a friend");
  const { code, stdout } = await shop.run(["doctor"]);
  expect(code).toBe(1);
  expect(stdout).toContain("[danger]  file/header: ");
  expect(shop.read("locks.db")).toBe("a letter to a friend");
});

it("ends with 69 where the store is out of reach, and 64 for wrong usage", async () => {
  await using shop = new Workshop();
  await onFreePorts(1, async ([port = 0]) => {
    const away = await shop.run(["doctor", "--store", `etcd://127.0.0.1:${port}`]);
    expect(away).toMatchObject({ code: 69, stdout: "" });
    expect(away.stderr).toContain("ECONNREFUSED");
  });
  expect((await shop.run(["doctor", "name"])).code).toBe(64);
  expect((await shop.run(["doctor", "--ttl", "0s"])).code).toBe(64);
});
