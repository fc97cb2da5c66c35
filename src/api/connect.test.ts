import { describe, expect, it } from "vitest";
import { InvalidOptionError, UnsupportedError } from "../errors/index.js";
import { connect } from "./connect.js";
import { Holdfast } from "./holdfast.js";

describe("connect", () => {
  it("opens the store that a URL names, with defaults", async () => {
    await using locks = await connect("memory:", { waitMs: 0 });
    expect(locks).toBeInstanceOf(Holdfast);
    await locks.mutex("x").run(async () => {
      await expect(locks.mutex("x").acquire()).rejects.toMatchObject({ waitMs: 0 });
    });
  });

  it("opens a memory of its own, unless it has a name that others say, too", async () => {
    await using alone = await connect("memory:");
    await using other = await connect("memory:");
    await using shared = await connect("memory:connect-test");
    await using sharing = await connect("memory:connect-test");
    for (const locks of [alone, other, shared]) {
      expect(await locks.mutex("x").tryAcquire()).not.toBeNull();
    }
    expect(await sharing.mutex("x").tryAcquire()).toBeNull();
  });

  it("refuses a scheme that it does not know, and hides the rest of the URL", async () => {
    const error = await problem("mysql://admin:hunter2@db.internal/locks?key=hunter2");
    expect(error).toMatchObject({ option: "url", value: "mysql:" });
    expect(error.rule).toContain("memory:");
    for (const secret of ["hunter2", "admin", "db.internal"]) {
      expect(error.message).not.toContain(secret);
    }
  });

  it.each(["", "hunter2", "//admin:hunter2@host", "not a url", "http//hunter2"])(
    "refuses what is no URL, and does not show it: %s",
    async (url) => {
      const error = await problem(url);
      expect(error).toMatchObject({ option: "url", value: "(hidden)" });
      expect(error.message).not.toContain("hunter2");
      expect(error.cause).toBeUndefined();
    },
  );

  it("does not take a name of an object for a scheme", async () => {
    for (const url of ["constructor:x", "__proto__:x", "toString:x"]) {
      expect(await problem(url)).toBeInstanceOf(InvalidOptionError);
    }
  });

  it.each([
    "redis://admin:hunter2%zz@127.0.0.1:1",
    "redlock://admin:hunter2%zz@127.0.0.1:1,127.0.0.1:2",
    "redis://admin:hunter2@127.0.0.1:1,127.0.0.1:2",
    "redis://admin:hunter2@127.0.0.1:1/first",
    "redis://127.0.0.1:1?replica=hunter2",
    "redis://127.0.0.1:1?ca=hunter2.pem",
    "redlock://127.0.0.1:1,127.0.0.1:2?ttl=hunter2",
    "file:/tmp/locks.db?namespaces=hunter2",
    "file:/tmp/hunter2%zz/locks.db",
    "file:/tmp/hunter2%2Flocks.db",
  ])("refuses %s before it connects, and shows no value", async (url) => {
    const error = await problem(url);
    expect(error).toMatchObject({ option: "url" });
    expect(error.message).not.toContain("hunter2");
  });

  it("opens no thread for locks that live in the thread of the caller", async () => {
    const refused = connect("memory:", { thread: true });
    await expect(refused).rejects.toMatchObject({ option: "thread", value: true });
  });

  it("checks the option thread, and the URL before it starts a thread", async () => {
    for (const thread of ["yes", 1, null]) {
      const refused = connect("memory:", { thread: thread as never });
      await expect(refused).rejects.toMatchObject({ option: "thread" });
    }
    const refused = connect("mysql://db.internal", { thread: true });
    await expect(refused).rejects.toMatchObject({ option: "url", value: "mysql:" });
    const misspelt = connect("memory:", { tread: true } as never);
    await expect(misspelt).rejects.toThrow("did you mean thread?");
  });

  it("says why a thread cannot start whose file is not there, as in a bundle", async () => {
    // The sources have no compiled file, like the bundle of a program.
    const refused = connect("redis://127.0.0.1:1", { thread: true });
    await expect(refused).rejects.toThrow("leave holdfast out of the bundle");
    await expect(refused).rejects.toBeInstanceOf(UnsupportedError);
  });

  it("checks the defaults", async () => {
    await expect(connect("memory:", { ttlMs: -1 })).rejects.toMatchObject({ option: "ttlMs" });
  });
});

async function problem(url: string): Promise<InvalidOptionError> {
  const outcome = await connect(url).catch((error) => error);
  if (!(outcome instanceof InvalidOptionError)) throw new Error("it was taken");
  return outcome;
}
