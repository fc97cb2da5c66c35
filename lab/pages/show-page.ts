/** `npm run lab -- SUBJECT FAULT --open`: a page for one trial, in the browser if there is one. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { History } from "../history.js";
import type { Cell } from "../matrix.js";
import { PROJECT } from "../versions.js";
import { exhibitOf } from "./exhibit.js";
import { fileOf } from "./matrix-page.js";
import { trialPage } from "./trial-page.js";

export async function showPage(history: History, cells: readonly Cell[]): Promise<void> {
  const read = (path: string): string => readFileSync(join(PROJECT, path), "utf8");
  const folder = join(PROJECT, "lab", "build", "pages");
  const file = join(folder, `${fileOf(history)}.html`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, trialPage(history, exhibitOf(history, cells, read)));
  process.stdout.write(`The page is ${file}\n`);
  await openInBrowser(file);
}

/** Does nothing where there is no desktop, or where it has no program for pages. */
async function openInBrowser(file: string): Promise<void> {
  const [command, ...args] = opener(file);
  if (command === undefined) return;
  // The browser lives on after this process.
  const child = spawn(command, args, { detached: true, stdio: "ignore" });
  child.unref();
  await once(child, "spawn").catch(() => undefined);
}

function opener(file: string): string[] {
  switch (process.platform) {
    case "darwin":
      return ["open", file];
    case "win32":
      return ["explorer", file];
    default: {
      const { DISPLAY, WAYLAND_DISPLAY } = process.env;
      return DISPLAY || WAYLAND_DISPLAY ? ["xdg-open", file] : [];
    }
  }
}
