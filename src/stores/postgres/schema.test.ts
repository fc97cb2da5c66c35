import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { SCHEMA } from "./schema.generated.js";

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

describe("the schema", () => {
  it("has every source", () => {
    const named = [...SCHEMA.matchAll(/^-- From (\w+\.sql)$/gm)].map(([, file]) => file);
    expect(named.sort()).toEqual(readdirSync(pathOf("./sql")).sort());
  });

  it("names no object of the schema without the schema", () => {
    const made = [
      ...SCHEMA.matchAll(
        /create (?:or replace )?(?:unlogged )?(table|function) (?:if not exists )?(\S+)/g,
      ),
    ];
    expect(made.length).toBeGreaterThan(20);
    for (const [, , name] of made) expect(name).toMatch(/^holdfast\./);
  });

  it("raises its own errors in a class that the SQL standard leaves to implementations", () => {
    const states = [...SCHEMA.matchAll(/(?:errcode =|sqlstate) '([0-9A-Z]{5})'/g)];
    expect(states.length).toBeGreaterThan(3);
    for (const [, state] of states) expect(state).toMatch(/^LF/);
  });

  it("gives every function that clients may call a search_path of its own", () => {
    const functions = SCHEMA.split(/^create or replace function /m).slice(1);
    const callable = functions.filter((text) => text.includes("security definer"));
    expect(callable.length).toBeGreaterThan(1);
    for (const text of callable) expect(text).toMatch(/set search_path = pg_catalog, pg_temp/);
  });
});
