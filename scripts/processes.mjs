// Processes of a test run, found by a variable of their environment or by their parents.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The variable with the test file that a process belongs to. */
export const FILE = "HOLDFAST_TEST_FILE";

/**
 * @typedef {object} Found
 * @property {number} pid
 * @property {string} command
 * @property {string | undefined} file
 */

/**
 * The processes whose environment has this entry. Found on Linux only.
 *
 * @param {string} entry
 */
export function processesWith(entry) {
  return processes((_pid, environment) => environment.includes(entry));
}

/**
 * The same, and those that work in one of these folders: Redis and Postgres overwrite their
 * environment with their title.
 *
 * @param {string} entry
 * @param {readonly string[]} folders
 */
export function processesOf(entry, folders) {
  return processes((pid, environment) => {
    if (environment.includes(entry)) return true;
    const cwd = `${readlinkSync(`/proc/${pid}/cwd`)}/`;
    return folders.some((folder) => cwd.startsWith(`${folder}/`));
  });
}

/**
 * @param {(pid: number, environment: readonly string[]) => boolean} isMeant
 * @returns {Found[]}
 */
function processes(isMeant) {
  const found = [];
  for (const name of entriesOfProc()) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      if (!isMeant(pid, environment)) continue;
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      // A process that has ended and was not waited for has no program any more.
      readlinkSync(`/proc/${pid}/exe`);
      const file = environment.find((one) => one.startsWith(`${FILE}=`))?.slice(FILE.length + 1);
      found.push({ pid, command, file });
    } catch {
      // It has ended meanwhile, or belongs to another user.
    }
  }
  return found;
}

function entriesOfProc() {
  try {
    return readdirSync("/proc");
  } catch {
    return [];
  }
}

/**
 * Kills a process with everything that it started: on Linux all processes that have this entry in
 * their environment, elsewhere its children and theirs.
 *
 * @param {number} pid
 * @param {string} entry
 */
export function killTree(pid, entry) {
  const below = descendantsOf(pid);
  kill(pid);
  for (const child of below) kill(child);
  // Until those are gone that were being started.
  for (let found = processesWith(entry); found.length > 0; found = processesWith(entry)) {
    for (const one of found) kill(one.pid);
  }
}

/** @param {number} pid */
function descendantsOf(pid) {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const rows = (stdout ?? "").split("\n").map((line) => line.trim().split(/\s+/).map(Number));
  const found = [pid];
  for (const parent of found) {
    for (const [child = 0, itsParent] of rows) if (itsParent === parent) found.push(child);
  }
  return found.slice(1);
}

/** @param {number} pid */
export function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended meanwhile.
  }
}
