import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./packed-project.js";

const guide = readFileSync(join(root, "docs/guide.md"), "utf8");

/** The first code block of a section of the guide. It has no types, so Node can run it. */
function codeOf(section: string): string {
  const text = guide.slice(guide.indexOf(`\n## ${section}\n`));
  return /```ts\n([\s\S]*?)```/.exec(text)?.[1] ?? "";
}

/** The declarations of the fragment, and a holder that makes it wait. */
const given = (lock: string, isTaken: boolean): string => `
import { setTimeout as sleep } from "node:timers/promises";
import { tracingChannel } from "node:diagnostics_channel";
import { channels, Holdfast } from "holdfast";
import { MemorySpace, memoryStore } from "holdfast/memory";

const space = new MemorySpace();
const locks = new Holdfast(memoryStore({ space }));
const others = new Holdfast(memoryStore({ space }));
setTimeout(() => process.exit(1), 60_000).unref();
if (${isTaken}) {
  await others.${lock};
  tracingChannel(channels.acquire).start.subscribe(() => console.log("waits"));
}
const work = (signal) => {
  console.log("works");
  return sleep(60_000, undefined, { signal });
};
const indexBatch = () => {
  console.log("works");
  return sleep(5);
};
`;

/** Where \`stop\` comes from, for the fragment that does not say it. */
const STOP = `
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
`;

it.each([
  ["Shutting down", 'mutex("worker").acquire()', "works"],
  ["Shutting down", 'mutex("worker").acquire()', "waits"],
  ["Elections", 'election("indexer").campaign()', "works"],
  ["Elections", 'election("indexer").campaign()', "waits"],
])("the code of %s after %s ends by SIGTERM while it %s", async (section, lock, state) => {
  const code = codeOf(section);
  const stop = code.includes("new AbortController") ? "" : STOP;
  const program = `${given(lock, state === "waits")}${stop}${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { cwd: root });
  let errors = "";
  child.stderr.on("data", (text) => {
    errors += text;
  });
  const closed = once(child, "close");
  const [output] = await Promise.race([once(child.stdout, "data"), closed]);
  expect(`${output}${errors}`).toContain(state);
  child.kill("SIGTERM");
  expect([await closed, errors]).toEqual([[0, null], ""]);
});
