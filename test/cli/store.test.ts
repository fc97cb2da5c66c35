/** Which store the command uses: never one that excludes nobody without a word about it. */
import { chmodSync, existsSync, rmSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, it } from "vitest";
import { MAIN, Workshop } from "./command-line.js";

/** A user without a password entry, as containers have. */
const UID = 54_321;
const AS_UID = ["--reuid", `${UID}`, "--regid", `${UID}`, "--clear-groups"];

/** Some verbs would run until they are interrupted. */
const SHORT = { timeout: 30_000 };

const USES: readonly (readonly string[])[] = [
  ["run", "x", "--", "echo", "ran"],
  ["once", "x", "--keep", "1h", "--", "echo", "ran"],
  ["elect", "x", "--", "echo", "ran"],
  ["elect", "--observe", "x"],
  ["acquire", "x", "--ttl", "1m"],
  ["renew"],
  ["release"],
  ["wait", "x"],
  ["list"],
  ["show", "x"],
  ["watch"],
  ["revoke", "x", "--token", "1", "--reason", "test"],
  ["dashboard"],
];

describe("HOLDFAST_STORE", () => {
  it.each(USES)("is refused by %s if it is set but empty", SHORT, async (...words) => {
    await using shop = new Workshop();
    const env = { HOLDFAST_STORE: "", HOLDFAST_HANDLE: "a-handle" };
    const { code, stdout, stderr } = await shop.run(words, { env });
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toContain("HOLDFAST_STORE is set but empty.");
  });

  it("does not matter where --store names one", async () => {
    await using shop = new Workshop();
    const env = { HOLDFAST_STORE: "" };
    const { code } = await shop.run(["run", "--store", shop.store, "x", "--", "true"], { env });
    expect(code).toBe(0);
  });
});

describe("a store in memory", () => {
  it.each(USES)("is refused by %s", SHORT, async (...words) => {
    await using shop = new Workshop();
    for (const url of ["memory:", "MEMORY:jobs"]) {
      const env = { HOLDFAST_STORE: url, HOLDFAST_HANDLE: "a-handle" };
      const { code, stdout, stderr } = await shop.run(words, { env });
      expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
      expect(stderr).toContain("A store in memory excludes no other process");
    }
  });
});

describe("the store in use", () => {
  it.concurrent.each(USES.slice(0, 3))(
    "is named by %s -v, without its password",
    async (...words) => {
      await using shop = new Workshop();
      const [verb = "", ...rest] = words;
      const named = await shop.run([verb, "-v", ...rest]);
      expect(named.stderr).toContain(`holdfast: store: ${shop.store}\n`);
      const url = "redis://ann:hunter2@127.0.0.1:1";
      const hidden = await shop.run([verb, "-v", "-n", ...rest], { env: { HOLDFAST_STORE: url } });
      expect(hidden.stderr).toContain("holdfast: store: redis://ann:***@127.0.0.1:1\n");
      expect(hidden.stderr).not.toContain("hunter2");
    },
  );

  it("is named by show and by an empty list", async () => {
    await using shop = new Workshop();
    await shop.hold("x");
    expect((await shop.run(["show", "x"])).stdout).toContain(`x (lock) in ${shop.store}\n`);
    expect((await shop.run(["show", "free"])).stdout).toBe(`free is free in ${shop.store}\n`);
    const json = await shop.run(["show", "--json", "x"]);
    expect(JSON.parse(json.stdout)).toMatchObject({ name: "x", store: shop.store });
    expect((await shop.run(["list", "none"])).stderr).toContain(`in ${shop.store}\n`);
  });

  it("is named by its path where it is the default file", async () => {
    await using shop = new Workshop();
    const folder = join(userInfo().homedir, ".local/state/holdfast");
    const path = join(folder, "locks.db");
    const isNew = !existsSync(folder);
    const { stdout } = await shop.run(["show", "x"], { env: { HOLDFAST_STORE: "file:" } });
    // The locks of this user stay; a test leaves nothing in the home folder.
    if (isNew) rmSync(folder, { recursive: true, force: true });
    expect(stdout).toContain(` in ${pathToFileURL(path).href}\n`);
  });
});

const cannotSwitch = process.getuid?.() !== 0 || !existsSync("/usr/bin/setpriv");

// Only root can become another user.
describe.skipIf(cannotSwitch)("a user without a password entry", () => {
  const asUser = (words: readonly string[]) => [...AS_UID, process.execPath, MAIN, ...words];

  it("uses a store that is named", async () => {
    await using shop = new Workshop();
    chmodSync(shop.folder, 0o777);
    const env = { HOLDFAST_STORE: `file:${shop.path("own/locks.db")}` };
    const words = ["run", "x", "--", "echo", "ran"];
    const { code, stdout } = await shop.startProgram("setpriv", asUser(words), { env }).result;
    expect({ code, stdout }).toEqual({ code: 0, stdout: "ran\n" });
    const board = shop.startProgram("setpriv", asUser(["dashboard"]), { env });
    await board.shows("open this URL");
  });

  it("is told to name one", async () => {
    await using shop = new Workshop();
    const env = { HOLDFAST_STORE: undefined };
    for (const words of [["run", "x", "--", "echo", "ran"], ["show", "x"], ["dashboard"]]) {
      const { code, stdout, stderr } = await shop.startProgram("setpriv", asUser(words), { env })
        .result;
      expect({ code, stdout }).toEqual({ code: 69, stdout: "" });
      expect(stderr).toContain(`the password entry of uid ${UID} has none. Name the file`);
    }
  });
});
