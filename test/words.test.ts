import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "..");

/** Nouns that every programmer knows: they need no entry in the glossary. */
const ORDINARY = [
  "address answer argument call callback case change check child choice clock code collaborator",
  "connection context count counter detail display disposer element emitter end error event",
  "execution exit failure field fifo file header headline heap history holdfast id inspection",
  "instruction interruption ioredis item key kind layout line link list listener map master",
  "message metadata method move mutex number op option origin page part path persistence point",
  "process proof question random reader reason recipient record redis redlock report request",
  "revision round route row rule run screen script search semaphore server set setting shutdown",
  "signal snapshot socket spec splitter sqlite state status step stream subscription sum target",
  "term text time timeline timer tool total trial url value verb view worker writer",
].flatMap((line) => line.split(" "));

const glossary = readFileSync(join(root, "docs/README.md"), "utf8").split("\n## Words\n")[1] ?? "";
const words = [...glossary.matchAll(/^\| (?!word \|)([a-z -]+) \|/gm)].map(([, word = ""]) =>
  word.replace("-", " "),
);

const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts") && !/\.test\.ts$|generated/.test(file))
  .map((file) => readFileSync(join(root, "src", file), "utf8"));

/** `SilenceLimit` as `silence limit`. */
const spoken = (name: string): string => name.replace(/([a-z0-9])(?=[A-Z])/g, "$1 ").toLowerCase();

const singular = (word: string): string =>
  word
    .replace(/ies$/, "y")
    .replace(/(ch|x|ss)es$/, "$1")
    .replace(/([^ius])s$/, "$1");

/** Words that describe a noun of the glossary, such as the reply `Granted`. */
const ADJECTIVE = /(ed|ing|able)$|^(again|asleep|by|foreign|gone|held|here|stale|to)$/;

/** Names of requests. */
const VERB = /^(acquire|compare|confirm|emit|inspect|keep|renew|revoke)$/;

it("says every word once", () => {
  expect(words.length).toBeGreaterThan(50);
  expect(words.filter((word, at) => words.indexOf(word) !== at)).toEqual([]);
});

it("has the noun of every exported type", () => {
  const known = new Set([...words, ...ORDINARY]);
  const names = sources.flatMap((text) => [
    ...text.matchAll(/^export (?:abstract )?(?:class|interface|type) (\w+)/gm),
  ]);
  const unknown = names.flatMap(([, name = ""]) => {
    const parts = spoken(name).split(" ");
    const head = singular(parts.at(-1) ?? "");
    const isKnown = [1, 2, 3].some((count) => {
      return known.has(parts.slice(-count).map(singular).join(" "));
    });
    return isKnown || ADJECTIVE.test(head) || VERB.test(head) ? [] : [name];
  });
  expect(unknown.sort()).toEqual([]);
});

it("has no word that the code does not use", () => {
  const text = spoken(sources.join("\n"));
  const isUsed = (word: string): boolean => new RegExp(`\\b${word}(s|es)?\\b`).test(text);
  expect(words.filter((word) => !isUsed(word))).toEqual([]);
});

it("lists no ordinary word that the glossary explains", () => {
  expect(ORDINARY.filter((word) => words.includes(word))).toEqual([]);
});
