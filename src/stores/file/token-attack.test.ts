import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkAsync } from "../../../test/fixtures/property.js";
import { expectTokensToRise, tokenAttack } from "../../../test/fixtures/token-attack.js";
import { Holdfast } from "../../api/holdfast.js";
import { openSqlite } from "./client.js";
import { FileArbiter } from "./file-store.js";
import { fileStore } from "./index.js";

let folder: string;
let path: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-file-"));
  path = join(folder, "locks.db");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("gives tokens that rise and are exact, whatever numbers its clients send", async () => {
  let namespaces = 0;
  const property = fc.asyncProperty(tokenAttack, async (attack) => {
    const arbiter = new FileArbiter(path, `${namespaces++}`);
    await expectTokensToRise(attack, (commands) => arbiter.execute("", commands));
    await arbiter.close();
  });
  await checkAsync(property, 40);
}, 60_000);

it.each(["9007199254740991", "10800000000000000", "9223372036854775807"])(
  "refuses to count on from a last token of %s, and says what to do",
  async (token) => {
    const namespace = `last ${token}`;
    const locks = new Holdfast(fileStore({ path, namespace }));
    await locks.mutex("m").run(() => {});
    const database = openSqlite(path);
    database.run("UPDATE name SET body = ? WHERE namespace = ? AND key = ''", [token, namespace]);
    database.close();
    await expect(locks.mutex("m").tryAcquire()).rejects.toMatchObject({
      code: "HF_STORE",
      retryable: false,
      message: expect.stringContaining("another namespace"),
    });
    await locks.close();
  },
);
