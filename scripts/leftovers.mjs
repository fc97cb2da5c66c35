// A test run leaves nothing behind: this finds files, folders and processes that it did leave.
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FILE, kill, processesOf } from "./processes.mjs";

/** Every process that a run starts has this variable. */
const RUN = "HOLDFAST_TEST_RUN";
/** In the folder of a test file: which file it is. */
const NAME = ".test-file";
const MEMORY = "/dev/shm";
/** A process that was told to end may take this long on a busy machine. */
const ENDING_MS = 10_000;

export class Leftovers {
  /** The temporary folder of the run. Short: the paths of sockets are limited. */
  #folder = mkdtempSync(join(tmpdir(), "hf-"));
  /** The same in memory, for the folders of servers. */
  #memory = existsSync(MEMORY) ? mkdtempSync(join(MEMORY, "hf-")) : this.#folder;
  #home = homeEntries();

  constructor() {
    // Some servers refuse to run as root, and another user has to find their folders.
    for (const folder of [this.#folder, this.#memory]) chmodSync(folder, 0o711);
  }

  /** The environment for all processes of the run. */
  get env() {
    return { TMPDIR: this.#folder, HOLDFAST_TEST_MEMORY: this.#memory, [RUN]: this.#folder };
  }

  /** Waits for processes that are about to end, and for the folders that they remove. */
  async settle() {
    const endMs = performance.now() + ENDING_MS;
    while (performance.now() < endMs) {
      if (this.#processes().length === 0) return;
      await sleep(100);
    }
  }

  /**
   * Removes everything that is left, except in the home folder, and returns a line for each.
   *
   * @returns {string[]}
   */
  clear() {
    if (!existsSync(this.#folder)) return [];
    const processes = this.#processes();
    for (const { pid } of processes) kill(pid);
    const files = [...new Set([this.#folder, this.#memory])].flatMap((folder) => {
      const names = [...entriesOf(folder)].flatMap((name) => leftIn(folder, name));
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
      return names;
    });
    const added = [...homeEntries()].filter((name) => !this.#home.has(name));
    return [
      ...processes.map(({ pid, command, file }) => `process ${pid}${by(file)}: ${command}`),
      ...files.map((name) => `temporary file or folder: ${name}`),
      ...added.map((name) => `in the home folder: ${name}`),
    ];
  }

  #processes() {
    return processesOf(`${RUN}=${this.#folder}`, [this.#folder, this.#memory]);
  }
}

/**
 * Gives a test file a temporary folder in that of the run, and its name to the processes that it
 * starts.
 *
 * @param {string} file
 */
export function ownFolder(file) {
  const folder = process.env[RUN];
  if (!folder) return;
  const own = mkdtempSync(join(folder, "f-"));
  chmodSync(own, 0o711);
  writeFileSync(join(own, NAME), file);
  Object.assign(process.env, { TMPDIR: own, [FILE]: file });
}

/**
 * @param {string} folder
 * @param {string} name
 */
function leftIn(folder, name) {
  const own = join(folder, name);
  if (!existsSync(join(own, NAME))) return [name];
  const file = readFileSync(join(own, NAME), "utf8");
  const left = readdirSync(own).filter((entry) => entry !== NAME);
  return left.map((entry) => `${entry}${by(file)}`);
}

/** @param {string | undefined} file */
function by(file) {
  return file ? `, left by ${file}` : "";
}

/** Without the caches of tools, such as npm and Chromium, but with the locks of the command. */
function homeEntries() {
  const visible = [...entriesOf(homedir())].filter((name) => !name.startsWith("."));
  const locks = ".local/state/holdfast";
  return new Set(existsSync(join(homedir(), locks)) ? [...visible, locks] : visible);
}

/** @param {string} folder */
function entriesOf(folder) {
  return new Set(readdirSync(folder));
}
