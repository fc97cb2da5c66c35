import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** Debian calls it chromium. */
const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** The path of a program; null where it is not installed. */
export function onPath(name: string): string | null {
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(existsSync) ?? null;
}

/** The program of an installed Chromium; null where there is none. */
export function findChromium(): string | null {
  return NAMES.map(onPath).find((path) => path !== null) ?? null;
}

/** Starts it without a window. Names of the tests' attackers lead to this machine. */
export function startChromium(executablePath: string): Promise<Browser> {
  const args = [
    // A container has no rights for the sandbox, and only pages of the tests are opened.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP *.test 127.0.0.1",
  ];
  return chromium.launch({ executablePath, args, headless: true });
}
