import { describe, expect, it } from "vitest";
import { InvalidOptionError } from "../../errors/index.js";
import { parseConnectString } from "./url.js";

describe("a connect string", () => {
  it.each([
    ["a", "a:2181", ""],
    ["a:1,b:2", "a:1 b:2", ""],
    ["a:1, b:2 ,c/app", "a:1 b:2 c:2181", "/app"],
    ["10.0.0.1:2181/", "10.0.0.1:2181", ""],
    ["[::1]:2182,[fe80::1]/a/b.c", "::1:2182 fe80::1:2181", "/a/b.c"],
  ])("%j names servers and the chroot", (text, servers, chroot) => {
    const parsed = parseConnectString(text);
    expect(parsed.servers.map(({ host, port }) => `${host}:${port}`).join(" ")).toBe(servers);
    expect(parsed.chroot).toBe(chroot);
  });

  it.each(["", ",", "a,", "a:x", "a:65536", "a:1:2", "a/b/", "a//b", "a/../b", "a/.", "::1"])(
    "%j is refused",
    (text) => expect(() => parseConnectString(text)).toThrow(InvalidOptionError),
  );
});
