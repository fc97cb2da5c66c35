// docs/api.md: the public API with its comments and examples, from the models of api-extractor.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

/**
 * A declaration in a model of api-extractor, as far as the page needs it.
 *
 * @typedef {{
 *   kind: string,
 *   name: string,
 *   docComment: string,
 *   excerptTokens: { text: string }[],
 *   members?: Item[],
 *   parameters?: unknown[],
 * }} Item
 */

/** The parts of an entry point with very many names; all other names stand before them. */
const GROUPS = /** @type {const} */ ([
  ["options", /Options$/],
  ["errors", /Error$/],
  ["events", /Event$|^channels$/],
]);
const MAX_TOGETHER = 40;

/**
 * @param {readonly (readonly [entry: string, file: string])[]} models
 * @returns {string}
 */
export function apiPage(models) {
  const comments = sourceComments();
  const known = new Set();
  const parts = models.map(([entry, file]) => {
    /** @type {Item[]} */
    const items = JSON.parse(readFileSync(file, "utf8")).members[0].members;
    // A replacement of another package has the names of that package, with meanings of their own.
    if (entry.includes("/compat/")) return entryPart(entry, items, comments);
    const fresh = items.filter(({ name }) => !known.has(name));
    for (const { name } of items) known.add(name);
    return entryPart(entry, fresh, comments);
  });
  return `# API reference

Every public name with its comment, as an editor shows it. \`npm run api\` writes this page from the
types, and the checks say when that is due. A test compiles every example, and runs those that need
no server. The [guide](guide.md) explains how the parts belong together; [options](options.md) and
[errors](errors.md) have more about theirs.

${models.map(([entry]) => `- [\`${entry}\`](#${anchorOf(entry)})`).join("\n")}

${parts.join("\n")}`;
}

/**
 * The comments of the declarations by their text without white space: the models lose the
 * indentation of examples.
 *
 * @returns {Map<string, string>}
 */
function sourceComments() {
  const files = readdirSync(join(root, "dist"), { recursive: true, encoding: "utf8" });
  const found = files
    .filter((file) => file.endsWith(".d.ts"))
    .flatMap(
      (file) => readFileSync(join(root, "dist", file), "utf8").match(/\/\*\*[\s\S]*?\*\//g) ?? [],
    )
    .map((comment) => /** @type {const} */ ([squeezed(comment), comment]));
  return new Map(found);
}

/** @param {string} comment */
function squeezed(comment) {
  return comment.replace(/[\s*]/g, "");
}

/**
 * @param {string} entry
 * @param {readonly Item[]} items
 * @param {Map<string, string>} comments
 */
function entryPart(entry, items, comments) {
  const groups = items.length > MAX_TOGETHER ? GROUPS : [];
  const groupOf = (/** @type {Item} */ { name }) =>
    groups.find(([, pattern]) => pattern.test(name))?.[0] ?? "";
  const titles = ["", ...groups.map(([title]) => title)];
  const parts = titles.flatMap((title) => {
    const own = items.filter((item) => groupOf(item) === title).sort(byWeight);
    if (own.length === 0) return [];
    const heading = title === "" ? `## ${entry}` : `## ${entry}: ${title}`;
    return [`${heading}\n`, ...own.map((item) => itemPart(item, comments))].join("\n");
  });
  return parts.join("\n");
}

const WEIGHTS = ["Function", "Class", "Interface", "Variable", "TypeAlias"];

/**
 * Things to call first, then their types.
 *
 * @param {Item} a
 * @param {Item} b
 */
function byWeight(a, b) {
  return WEIGHTS.indexOf(a.kind) - WEIGHTS.indexOf(b.kind) || a.name.localeCompare(b.name);
}

/**
 * @param {Item} item
 * @param {Map<string, string>} comments
 */
function itemPart(item, comments) {
  const members = item.members ?? [];
  const calls = members.filter((member) => member.parameters && isShown(member)).sort(byCall);
  const values = members.filter((member) => !member.parameters && isShown(member));
  const hasBody = members.length > 0 || item.kind === "Class" || item.kind === "Interface";
  const parts = [
    `### ${item.name}`,
    hasBody ? headOf(item) : code(textOf(item)),
    ...described(item, comments),
    ...(values.length > 0 ? [table(values, comments)] : []),
    ...calls.flatMap((call) => {
      const signature = signatureOf(call).replace(/^constructor/, `new ${item.name}`);
      return [`**\`${signature}\`**`, ...described(call, comments)];
    }),
  ];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

/**
 * The constructor first, and symbols last.
 *
 * @param {Item} a
 * @param {Item} b
 */
function byCall(a, b) {
  const place = (/** @type {Item} */ { kind, name }) =>
    kind === "Constructor" ? 0 : name.startsWith("[") ? 2 : 1;
  return place(a) - place(b) || a.name.localeCompare(b.name);
}

/**
 * Brands serve `instanceof` alone; a constructor of an error is not for users.
 *
 * @param {Item} member
 */
function isShown({ kind, name, docComment }) {
  return name !== "brand" && !(kind === "Constructor" && docComment.includes("Error` class"));
}

/** @param {Item} item */
function headOf(item) {
  const base = textOf(item).match(/ (extends|implements) .*/);
  return base ? `*${base[0].trim().replace(/\s*\{?$/, "")}*` : "";
}

/**
 * The comment as Markdown: sentences, then the example.
 *
 * @param {Item} item
 * @param {Map<string, string>} comments
 */
function described({ docComment, kind }, comments) {
  if (kind === "Constructor") return [];
  const comment = comments.get(squeezed(docComment)) ?? docComment;
  const lines = comment.split("\n").slice(comment.startsWith("/**\n") ? 1 : 0);
  const text = lines.map((line) => line.replace(/^ *\/?\*+\/? ?/, "").replace(/ ?\*\/$/, ""));
  const [sentences = "", example] = text.join("\n").split("@example\n");
  const said = sentences.replace(/\s+/g, " ").trim();
  const shown = said.startsWith("{@inheritDoc") ? "" : said;
  return [shown, ...(example === undefined ? [] : [code(example.trim(), "ts sketch")])];
}

/**
 * @param {readonly Item[]} values
 * @param {Map<string, string>} comments
 */
function table(values, comments) {
  const rows = values.map((value) => {
    const [, name = value.name, type = ""] =
      signatureOf(value).match(/^([^:=]+?)\s*[:=]\s*(.*)$/) ?? [];
    const cells = [`\`${name}\``, `\`${type}\``, described(value, comments)[0] ?? ""];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return ["| member | type | meaning |", "|---|---|---|", ...rows].join("\n");
}

/** @param {Item} item */
function signatureOf(item) {
  const text = textOf(item).replace(/\s+/g, " ");
  return text.replace(/^(static )?(readonly )?/, "").replace(/;$/, "");
}

/** @param {Item} item */
function textOf({ excerptTokens }) {
  const text = excerptTokens.map((token) => token.text).join("");
  return text.replace(/^export (declare )?/, "").trim();
}

/**
 * @param {string} text
 * @param {string} language
 */
function code(text, language = "ts sketch") {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

/** @param {string} heading */
function anchorOf(heading) {
  return heading.replace(/[^\w-]/g, "");
}
