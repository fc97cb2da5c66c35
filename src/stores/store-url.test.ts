import { describe, expect, it } from "vitest";
import { InvalidOptionError } from "../errors/index.js";
import { parseStoreUrl, StoreUrl, type StoreUrlRules } from "./store-url.js";

const RULES: StoreUrlRules = { port: 6_379, parameters: ["namespace", "replicas"], isSecure: true };

function read(text: string, rules: Partial<StoreUrlRules> = {}): StoreUrl {
  return new StoreUrl(parseStoreUrl(text), { ...RULES, ...rules });
}

function problem(task: () => unknown): InvalidOptionError {
  try {
    task();
  } catch (error) {
    if (error instanceof InvalidOptionError) return error;
    throw error;
  }
  throw new Error("it was taken");
}

describe("a URL of a store", () => {
  it("has credentials, hosts, a path and parameters", () => {
    const url = read("rediss://us%40er:p%25%3Aw@a:1,b/master/5?namespace=x%20y&replicas=2");
    expect(url).toMatchObject({
      username: "us@er",
      password: "p%:w",
      hosts: [
        { host: "a", port: 1 },
        { host: "b", port: 6_379 },
      ],
      path: ["master", "5"],
    });
    expect(url.text("namespace")).toBe("x y");
    expect(url.numbers("replicas")).toEqual({ replicas: 2 });
  });

  it.each([
    ["redis://", [{ host: "127.0.0.1", port: 6_379 }]],
    ["redis://[::1]:7", [{ host: "::1", port: 7 }]],
    [
      "redis+sentinel://a:1,[::1]:2/m",
      [
        { host: "a", port: 1 },
        { host: "::1", port: 2 },
      ],
    ],
    ["redis://a?node=b:2&host=c", ["a", "c", "b"]],
  ])("%s names its hosts", (text, hosts) => {
    const named = read(text).hosts;
    expect(typeof hosts[0] === "string" ? named.map(({ host }) => host) : named).toEqual(hosts);
  });

  it.each([
    ["a % in the password", "redis://user:hunter2%zz@host", /password .* %25/],
    ["a % in the user name", "redis://hunter2%zz:x@host", /user name .* %25/],
    ["a port that is no number", "redis://u:hunter2@host:1,b:hunter2", /hosts as host:port/],
    ["a path behind a further host", "etcd://a?host=b/hunter2", /hosts as host:port/],
    ["credentials for each host", "redlock://u:hunter2@a,x:hunter2@b", /once, .* for all hosts/],
    ["credentials for the second host", "redlock://a:1,x:hunter2@b:2", /once, .* for all hosts/],
    ["a parameter that it does not know", "redis://host?hunter=hunter2", /The parameters are: /],
  ])("with %s is refused, and shows no secret", (_what, text, rule) => {
    const error = problem(() => read(text));
    expect(error.message).toMatch(rule);
    expect(error.message).not.toContain("hunter2");
    expect(error.cause).toBeUndefined();
  });

  it.each(["", "two", "-1", "1e3", "Infinity"])("has numbers, not %j", (text) => {
    const error = problem(() => read(`redis://host?replicas=${text}`).numbers("replicas"));
    expect(error).toMatchObject({ option: "replicas", value: text });
  });
});

describe("files of TLS", () => {
  it("are refused where connections are not encrypted", async () => {
    const asked = read("redis://host?ca=ca.pem", { isSecure: false }).tls();
    await expect(asked).rejects.toThrow(/"ca".*TLS only/);
    expect(await read("redis://host", { isSecure: false }).tls()).toBeNull();
  });

  it.each(["cert", "key"])("are refused with %s alone", async (name) => {
    await expect(read(`rediss://host?${name}=x.pem`).tls()).rejects.toThrow(/cert and key/);
  });

  it("that cannot be read are named, with the cause", async () => {
    await expect(read("rediss://host?ca=/nowhere/ca.pem").tls()).rejects.toMatchObject({
      option: "ca",
      value: "/nowhere/ca.pem",
      rule: "must be the path of a file to read (ENOENT)",
    });
  });

  it("are not needed", async () => {
    expect(await read("rediss://host").tls()).toEqual({});
  });
});
