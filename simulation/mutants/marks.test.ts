import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { mutants } from "./list.js";
import { plant, readCode } from "./plant.js";

const BUILD = fileURLToPath(new URL("../../build/src", import.meta.url));

describe("the marks in the code", () => {
  const code = readCode(BUILD);

  it.each(mutants)("carry the mutant '$title'", (mutant) => {
    const planted = plant(mutant, code);
    expect([...planted.values()]).not.toEqual([...code.values()]);
  });
});
