/** The trials that the words and options of the command choose. */
import { expectedFailure } from "./expected.js";
import { faults } from "./faults/all.js";
import { type Cell, cellsOf } from "./matrix.js";
import { subjects } from "./subjects/all.js";
import type { Subject } from "./subjects/subject.js";

export interface Choice {
  /** A subject or a fault, and a fault; names, or how they begin. */
  readonly words: readonly string[];
  /** Every rung once, and the stores of Holdfast against three faults each. */
  readonly isQuick: boolean;
  /** With the peers, which otherwise run only when they are named. */
  readonly isAll: boolean;
}

/** The faults of the quick part: two of the process, one of the network. */
const QUICK_FAULTS = ["killed-holder", "stopped-holder", "late-copy"];
/** A folder has no network, and only writes show a fence. */
const QUICK_FAULTS_OF_FOLDER = ["killed-holder", "stopped-holder", "long-work"];
const QUICK_FAULTS_OF_FENCE = ["stopped-after-check"];

export function choose({ words, isQuick, isAll }: Choice): readonly Cell[] {
  const [first = "", second = ""] = words;
  const all = cellsOf(subjects, faults);
  const isChosen = ({ subject, fault }: Cell): boolean => {
    if (isNamed(subject.id, first)) return isNamed(fault.id, second);
    return second === "" && isNamed(fault.id, first);
  };
  return all
    .filter((cell) => !isQuick || isOfQuickPart(cell, all))
    .filter(({ subject }) => isAll || subject.family !== "peer" || isNamed(subject.id, first, true))
    .filter(isChosen);
}

/** A word that is a whole name does not stand for longer names. */
function isNamed(id: string, word: string, isWordNeeded = false): boolean {
  if (isWordNeeded && word === "") return false;
  const isWhole = [...subjects, ...faults].some((one) => one.id === word);
  return isWhole ? id === word : id.startsWith(word);
}

/** Here a renewal races with the expiry of its key, and may win: only the full part has it. */
function isRace({ subject, fault }: Cell): boolean {
  return subject.id === "rung-5-exact" && fault.id === "long-work";
}

/** Of the ladder, the first cell in which each rung fails. */
function isOfQuickPart({ subject, fault }: Cell, all: readonly Cell[]): boolean {
  if (subject.family === "peer") return false;
  if (subject.family === "holdfast") return quickFaultsOf(subject).includes(fault.id);
  const own = all.filter((cell) => cell.subject === subject);
  const failing = own.find((cell) => {
    return expectedFailure(subject.id, cell.fault.id) !== null && !isRace(cell);
  });
  return failing?.fault === fault;
}

function quickFaultsOf({ isFenced, place }: Subject): readonly string[] {
  if (isFenced) return QUICK_FAULTS_OF_FENCE;
  return place === "folder" ? QUICK_FAULTS_OF_FOLDER : QUICK_FAULTS;
}
