import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BUILD, simulate, simulateIn } from "../built-simulation.js";
import { BuildCopy } from "../mutants/build-copy.js";
import { mutants } from "../mutants/list.js";
import { breakages } from "./breakages.js";
import { scopes } from "./scopes.js";

const PATIENCE = { timeout: 30 * 60_000 };

describe("in a small world", () => {
  const titles = scopes.map(({ title }) => title);
  it.for(titles)("nothing goes wrong: %s", PATIENCE, async (title) => {
    const { code, output } = await simulate("--search", title);
    expect(code, output).toBe(0);
    const [, states] = /^.*: (\d+) states, \d+ transitions, depth \d+/.exec(output) ?? [];
    expect(Number(states)).toBeGreaterThan(0);
  });
});

describe("a rule of the small client that is left out is missed", () => {
  const cases = breakages.flatMap(({ without, scope, violates }) => {
    return without === undefined ? [] : [[without, scope, violates] as const];
  });
  it.for(cases)("%s (%s)", PATIENCE, async ([without, scope, violates]) => {
    const { code, output } = await simulate("--search", scope, "--without", without);
    expect(code, output).toBe(1);
    expect(output).toMatch(violates);
  });
});

describe("a rule of the code that is left out is missed", () => {
  const cases = breakages.flatMap(({ mutant, scope, violates }) => {
    return mutant === undefined ? [] : [[mutant, scope, violates] as const];
  });
  let copy: BuildCopy;
  beforeAll(() => {
    copy = new BuildCopy(BUILD);
  });
  afterAll(() => copy.remove());

  it.for(cases)("%s (%s)", PATIENCE, async ([title, scope, violates]) => {
    const mutant = mutants.find((one) => one.title === title);
    if (!mutant) throw new Error(`There is no mutant "${title}".`);
    const { code, output } = await copy.with(mutant, () => {
      return simulateIn(copy.folder, "--search", scope);
    });
    expect(code, output).toBe(1);
    expect(output).toMatch(violates);
  });
});
