import { afterEach, expect, it, vi } from "vitest";
import { parseStoreUrl } from "../store-url.js";
import { readPostgresUrl } from "./url.js";

afterEach(() => {
  vi.doUnmock("pg");
  vi.doUnmock("postgres");
});

const read = (url: string) => readPostgresUrl(parseStoreUrl(url), ["offerMs"]);

it("has several hosts, each with its port", async () => {
  const { driver, options } = await read("postgresql://u:p%40@a,b:5433/db?namespace=n&offerMs=50");
  expect(driver.servers).toEqual(["a:5432", "b:5433"]);
  expect(options).toEqual({ namespace: "n", offerMs: 50, hasSynchronousStandby: false });
});

it.each(["prefer", "allow", "Require", ""])("refuses sslmode=%s", async (mode) => {
  const error = "must be one of disable, require, verify-ca, verify-full";
  await expect(read(`postgres://u:secret@h/db?sslmode=${mode}`)).rejects.toThrow(error);
});

it("refuses files of TLS where connections are not encrypted", async () => {
  const rule = "is for connections with TLS only";
  await expect(read("postgres://h/db?sslmode=disable&sslrootcert=x")).rejects.toThrow(rule);
});

it("takes the names that libpq has for the files", async () => {
  await expect(read("postgres://h/db?sslrootcert=/absent.pem")).rejects.toMatchObject({
    option: "ca",
    value: "/absent.pem",
  });
});

it.each([
  ["postgres://h/db/more", "must have one name in its path"],
  ["postgres://h/db?schema=x", 'Unknown parameter "schema"'],
  ["postgres://h/db?hasSynchronousStandby=yes", "must be true or false"],
])("refuses %s", async (url, text) => {
  await expect(read(url)).rejects.toThrow(text);
});

it("refuses clients that are too old", async () => {
  // pg 8.6 has no `unref`, postgres 1 no `typed`.
  vi.doMock("pg", () => ({ default: { Client: class {} } }));
  const sql = Object.assign(() => {}, { options: { host: ["h"], port: [1] }, unsafe: () => {} });
  vi.doMock("postgres", () => ({ default: () => sql }));
  const rule = "It needs pg 8.7 or later, or postgres 3: npm install pg@8.";
  await expect(read("postgres://h/db")).rejects.toThrow(rule);
});

it("takes postgres where pg is too old", async () => {
  vi.doMock("pg", () => ({ default: { Client: class {} } }));
  const { driver } = await read("postgres://h/db");
  expect(driver.servers).toEqual(["h:5432"]);
});
