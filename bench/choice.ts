import type { Question } from "./contest.js";

/** The questions that the words of the command line ask for. */
export interface Choice {
  readonly isQuick: boolean;
  /** Contestants in other languages take part. */
  readonly hasLanguages: boolean;
  readonly questions: readonly Question[];
  /** Questions that take too long, for a quick look or at all; they run only when named. */
  readonly leftOut: readonly Question[];
}

const OPTIONS: readonly string[] = ["--quick", "--languages", "--all"];

/** A text instead of a choice says which word is wrong, and lists the right ones. */
export function choose(words: readonly string[], all: readonly Question[]): Choice | string {
  const options = words.filter((word) => word.startsWith("-"));
  const names = words.filter((word) => !word.startsWith("-"));
  const unknownOption = options.find((option) => !OPTIONS.includes(option));
  if (unknownOption !== undefined) {
    const isHelp = ["--help", "-h"].includes(unknownOption);
    return usage(isHelp ? "" : `There is no option ${unknownOption}.`, all);
  }
  const unknown = names.find(
    (word) => !all.some(({ store, name }) => [store, name].includes(word)),
  );
  if (unknown !== undefined) return usage(`There is no benchmark "${unknown}".`, all);
  const named = all.filter(({ store, name }) =>
    names.every((word) => word === store || word === name),
  );
  if (named.length === 0) return usage(`There is no benchmark "${names.join(" ")}".`, all);
  const isQuick = options.includes("--quick");
  const isLeftOut = ({ takesLong = false, isOnDemand = false, name }: Question): boolean =>
    ((isQuick && takesLong) || isOnDemand) && !names.includes(name) && !options.includes("--all");
  return {
    isQuick,
    hasLanguages: options.includes("--languages"),
    questions: named.filter((question) => !isLeftOut(question)),
    leftOut: named.filter(isLeftOut),
  };
}

function usage(problem: string, all: readonly Question[]): string {
  const stores = [...new Set(all.map(({ store }) => store))];
  const known = stores.map((store) => {
    const names = all.filter((one) => one.store === store).map(({ name }) => name);
    return `  ${store.padEnd(9)}${names.join(", ")}`;
  });
  const lines = [
    "npm run bench -- [STORE] [QUESTION] [--quick] [--languages] [--all]",
    "",
    "Without a word all of them run, but for those of many minutes: name them, or add --all.",
    "--quick is a first look, of less than a minute.",
    "--languages adds locks in Go, Java and Python, built where their tools are installed.",
    "",
    ...known,
  ];
  return `${problem === "" ? "" : `${problem}\n\n`}${lines.join("\n")}\n`;
}
