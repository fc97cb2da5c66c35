/** The words and options of `npm run lab`. */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";

export const USAGE: string = `npm run lab -- [SUBJECT] [FAULT] [OPTIONS]

Without a word the trials of the ladder and of Holdfast run. A word may be the beginning of a name,
such as "rung". The exit code is 1 when a verdict is not the expected one.
--all      with the packages that one would use instead
--quick    every rung once, the stores of Holdfast against three faults each
--runs N   every trial N times, and whether their verdicts agree
--resume   with --runs: the trials that are missing after runs that were cut
--jobs N   so many trials at a time; default ${defaultJobs()}, by the cores of this machine
--open     of one trial: a page with the program, the picture and the lines that cure it
--list     the names
`;

export interface Command {
  readonly words: readonly string[];
  readonly isAll: boolean;
  readonly isQuick: boolean;
  readonly opens: boolean;
  readonly lists: boolean;
  readonly helps: boolean;
  readonly resumes: boolean;
  readonly runs: number;
  readonly jobs: number;
}

/** Trials wait most of the time; a trial that a busy machine delayed is repeated. */
function defaultJobs(): number {
  return availableParallelism() + 1;
}

/** Throws where the words or options make no sense. */
export function commandOf(args: readonly string[]): Command {
  const { values, positionals: words } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      all: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      open: { type: "boolean", default: false },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      resume: { type: "boolean", default: false },
      runs: { type: "string", default: "1" },
      jobs: { type: "string", default: `${defaultJobs()}` },
    },
  });
  const runs = countOf("--runs", values.runs);
  if (words.length > 2) throw new Error(`There are two words at most: ${words.join(" ")}.`);
  if (values.resume && runs === 1) throw new Error("--resume goes on with --runs.");
  if (values.open && runs > 1) throw new Error("--open shows one trial of one run.");
  return {
    words,
    isAll: values.all,
    isQuick: values.quick,
    opens: values.open,
    lists: values.list,
    helps: values.help,
    resumes: values.resume,
    runs,
    jobs: countOf("--jobs", values.jobs),
  };
}

function countOf(option: string, text: string): number {
  const count = Number(text);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new Error(`${option} must be a whole number from 1 on.`);
}
