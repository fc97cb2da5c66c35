import { expect, it } from "vitest";
import { commandOf, USAGE } from "./command.js";

it("understands words and options", () => {
  expect(commandOf(["rung-3", "lost-reply", "--open", "--jobs", "7"])).toMatchObject({
    words: ["rung-3", "lost-reply"],
    opens: true,
    resumes: false,
    runs: 1,
    jobs: 7,
  });
  expect(commandOf(["--runs", "20", "--resume"])).toMatchObject({ runs: 20, resumes: true });
});

it.each([
  [["--runs", "0"], "--runs must be a whole number from 1 on."],
  [["--jobs", "many"], "--jobs must be a whole number from 1 on."],
  [["--resume"], "--resume goes on with --runs."],
  [["--open", "--runs", "2"], "--open shows one trial of one run."],
  [["a", "b", "c"], "There are two words at most: a b c."],
  [["--fast"], "Unknown option '--fast'"],
])("refuses %j", (args, message) => {
  expect(() => commandOf(args)).toThrow(message);
});

it("says every option in its usage", () => {
  for (const option of ["all", "quick", "runs", "resume", "jobs", "open", "list"]) {
    expect(USAGE).toContain(`\n--${option} `);
  }
});
