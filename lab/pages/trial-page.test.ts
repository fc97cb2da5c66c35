import { expect, it } from "vitest";
import { stoppedHolder } from "../timeline/example-histories.js";
import { timeline } from "../timeline/timeline.js";
import { trialPage } from "./trial-page.js";

const program = { path: "lab/ladder/rung-2.ts", source: "/**\n * Rung 2.\n */\nlock();\ndel();\n" };
const cure = { path: "lab/ladder/rung-3.ts", source: "/**\n * Rung 3.\n */\nlock();\ncad();\n" };

it("has the picture, the program, the lines that cure it, the history and the command", () => {
  const page = trialPage(stoppedHolder, { program, cure });
  expect(page).toContain(timeline(stoppedHolder));
  expect(page).toContain('<span class="line"> * Rung 2.</span>');
  expect(page).toContain('<span class="line removed">- del();</span>');
  expect(page).toContain('<span class="line added">+ cad();</span>');
  expect(page).toContain('<span class="line">  lock();</span>');
  expect(page).toContain("<li>2.000 s: fault at process A: SIGSTOP.</li>");
  expect(page).toContain("<code>npm run lab -- rung-2 stopped-holder</code>");
  expect(page).not.toContain("Rung 3.");
});

it("leaves out the parts that a subject does not have", () => {
  expect(trialPage(stoppedHolder, {})).not.toMatch(/The program|cure it/);
  expect(trialPage(stoppedHolder, { program })).not.toContain("cure it");
});

it("escapes the program and the names, and runs no script", () => {
  const evil = "<script>alert(1)</script>";
  const page = trialPage(
    { ...stoppedHolder, subjectTitle: evil, command: evil, startedAt: evil },
    { program: { path: evil, source: evil }, cure: { path: evil, source: `${evil}${evil}` } },
  );
  expect(page).not.toContain("<script");
  expect(page).toContain("default-src 'none'; style-src 'unsafe-inline'");
});

it("names the store that holds where no rung does", () => {
  const store = { title: "Holdfast <on> Redis", command: "npm run lab -- holdfast-redis x" };
  const page = trialPage(stoppedHolder, { program, store });
  expect(page).toContain("<h2>No rung of the ladder cures it</h2>");
  expect(page).toContain("<p>Holdfast &lt;on&gt; Redis holds: <code>npm run lab -- holdfast-redis");
});
