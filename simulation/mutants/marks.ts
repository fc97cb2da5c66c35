/**
 * Marks in code: a comment `// rule: <id>` on the line before the statement, or the member of a
 * class, that keeps a rule. Mutants find the statement by its mark, so they survive renames.
 */
import { parseAst } from "rolldown/parseAst";

/** A node of the syntax tree; `start` and `end` are places in the text. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [property: string]: unknown;
}

const MARK = /^ *\/\/ rule: ([a-z0-9-]+)$/gm;
const STATEMENT = /(Statement|Declaration|Definition)$/;
const COMMENT = /\/\/.*/g;

/** The ids of all marks in a text, in order. */
export function marksIn(text: string): string[] {
  return [...text.matchAll(MARK)].map(([, id]) => id as string);
}

/** The statement behind a mark in compiled code. */
export function markedStatement(text: string, id: string): Node {
  const marks = [...text.matchAll(MARK)].filter((match) => match[1] === id);
  const [mark] = marks;
  if (!mark || marks.length > 1)
    throw new Error(`The mark "${id}" is there ${marks.length} times.`);
  const markEnd = mark.index + mark[0].length;
  for (const node of nodesIn(parseAst(text) as unknown as Node)) {
    if (node.start < markEnd || !STATEMENT.test(node.type)) continue;
    const between = text.slice(markEnd, node.start).replaceAll(COMMENT, "");
    if (between.trim() === "") return node;
    break;
  }
  throw new Error(`No statement follows the mark "${id}".`);
}

/** A node and all that it consists of, in the order of the text. */
export function* nodesIn(node: Node): Iterable<Node> {
  yield node;
  for (const part of Object.values(node).flat()) {
    if (typeof part === "object" && part !== null && "type" in part) yield* nodesIn(part as Node);
  }
}
