import type { Entry, History } from "../history.js";
import { escaped } from "../timeline/svg.js";
import { timeline } from "../timeline/timeline.js";
import { difference, withoutPreface } from "./difference.js";
import type { Exhibit, Program } from "./exhibit.js";

const STYLE = `
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #1f2328; background: #ffffff;
  font: 15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
svg { width: 100%; height: auto; }
pre { padding: 0.8rem; overflow-x: auto; background: #f6f8fa; border-radius: 6px; font-size: 13px; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; }
.line { display: block; min-height: 1.5em; }
.added { background: #dafbe1; }
.removed { background: #ffebe9; }
footer, .path { color: #59636e; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; }
  pre { background: #151b23; }
  .added { background: #12361f; }
  .removed { background: #4a1a1d; }
  footer, .path { color: #9198a1; }
}`;

const CLASSES = { " ": "line", "+": "line added", "-": "line removed" } as const;

/** One page for one trial: the picture, the program, and the lines that cure it. No script. */
export function trialPage(history: History, { program, cure, store }: Exhibit): string {
  const { subjectTitle, faultTitle, command, startedAt } = history;
  const title = escaped(`${subjectTitle} · ${faultTitle}`);
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${STYLE}
</style>
<main>
<h1>${title}</h1>
${timeline(history)}
${program ? section("The program", program, listing(program)) : ""}
${program && cure ? section("The lines that cure it", cure, cureOf(program, cure)) : ""}
${store ? refuge(store) : ""}
<h2>The history</h2>
<details>
<summary>${history.entries.length} entries</summary>
<ol>
${account(history)
  .map((sentence) => `<li>${escaped(sentence)}</li>`)
  .join("\n")}
</ol>
</details>
</main>
<footer>
<p>Run it again: <code>${escaped(command)}</code></p>
<p>Taken ${escaped(startedAt)}.</p>
</footer>
</html>
`;
}

function section(title: string, { path }: Program, code: string): string {
  return `<h2>${title}</h2>
<p class="path">${escaped(path)}</p>
<pre><code>${code}</code></pre>`;
}

function refuge({ title, command }: NonNullable<Exhibit["store"]>): string {
  return `<h2>No rung of the ladder cures it</h2>
<p>${escaped(title)} holds: <code>${escaped(command)}</code></p>`;
}

function listing({ source }: Program): string {
  return source
    .replace(/\n$/, "")
    .split("\n")
    .map((text) => line(" ", text))
    .join("");
}

/** The prefaces differ in every line and say so themselves: only the code is compared. */
function cureOf(program: Program, cure: Program): string {
  return difference(withoutPreface(program.source), withoutPreface(cure.source))
    .map(({ sign, text }) => line(sign, `${sign} ${text}`))
    .join("");
}

function line(sign: keyof typeof CLASSES, text: string): string {
  return `<span class="${CLASSES[sign]}">${escaped(text)}</span>`;
}

/** The history in words, a sentence for each entry. */
function account({ lanes, entries, verdict }: History): string[] {
  const titles = new Map(lanes.map(({ id, title }) => [id, title]));
  const named = (lane: string): string => titles.get(lane) ?? `the ${lane}`;
  const sentences = entries.map((entry) => {
    return `${(entry.atMs / 1000).toFixed(3)} s: ${sentence(entry, named)}.`;
  });
  return [...sentences, `Verdict: ${verdict.text}.`];
}

function sentence(entry: Entry, named: (lane: string) => string): string {
  if (entry.type === "truth") {
    if (entry.holder === null) return "in the store the lock is free";
    if (entry.holder === "ghost") return "in the store the lock is held by no process";
    return `in the store the lock is held by ${named(entry.holder)}${tokenOf(entry)}`;
  }
  const lane = named(entry.lane);
  switch (entry.type) {
    case "asks":
      return `${lane} asks for the lock`;
    case "believes":
      return `${lane} believes that it holds the lock${tokenOf(entry)}`;
    case "refused":
      return `${lane} gives up: ${entry.why}`;
    case "worksFrom":
      return `${lane} begins to work`;
    case "worksTo":
      return `${lane} ends its work`;
    case "releases":
      return `${lane} releases the lock`;
    case "told":
      return `${lane} is told: ${entry.reason}`;
    case "disbelieves":
      return `${lane} stops believing: ${entry.why}`;
    case "writes":
      return `a write of ${lane}${tokenOf(entry)} is ${entry.isRefused ? "refused" : "accepted"}`;
    case "fault":
      return `fault at ${lane}: ${entry.text}`;
  }
}

function tokenOf({ token }: { readonly token?: string }): string {
  return token === undefined ? "" : `, token ${token}`;
}
