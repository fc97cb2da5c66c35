/** Changes a marked statement of compiled code as a mutant says. */
import { type Node, nodesIn } from "./marks.js";
import type { Change, Terms } from "./mutant.js";

/** The text of a statement after the change; throws where the change does not apply to it. */
export function changed(text: string, statement: Node, change: Change): string {
  const code = (node: Node): string => text.slice(node.start, node.end);
  /** The statement with other code for one part of it. */
  const put = (part: Node, becomes: string): string => {
    const filled = becomes.replaceAll("$", () => code(part));
    return text.slice(statement.start, part.start) + filled + text.slice(part.end, statement.end);
  };
  if (change === "drop") return ";";
  if (change === "always") return put(ownValue(statement), "true");
  if (change === "never") return put(ownValue(statement), "false");
  if (change === "swap") {
    const comparison = onlyOne(statement, "a comparison", isComparison);
    const [left, right] = [comparison.left as Node, comparison.right as Node];
    return put(comparison, `${code(right)} ${comparison.operator} ${code(left)}`);
  }
  if ("value" in change) return put(ownValue(statement), `(${change.value})`);
  if ("why" in change) {
    const { text: part, becomes } = change;
    return part === undefined ? put(statement, becomes) : reworded(code(statement), part, becomes);
  }
  const whole = onlyOne(statement, `"${change.of}"`, (node) => isOf(node, change.of));
  const terms = termsOf(whole, change.of);
  const at = "only" in change ? change.only : change.term;
  const term = terms[at - 1];
  if (!term) throw new Error(`"${change.of}" has ${terms.length} terms, not ${at}.`);
  if ("only" in change) return put(whole, `(${code(term)})`);
  return put(term, change.becomes);
}

/** The condition of a statement, or what it returns, assigns or declares. */
function ownValue(statement: Node): Node {
  const { test, argument, value } = statement as { [part: string]: Node };
  const [declared] = (statement.declarations ?? []) as Node[];
  const expression = statement.expression as Node | undefined;
  const assigned = expression?.type === "AssignmentExpression" ? expression.right : expression;
  const found = test ?? argument ?? value ?? declared?.init ?? assigned;
  if (!found) throw new Error(`The marked ${statement.type} has no value.`);
  return found as Node;
}

/** The one part of a statement that fits and lies in no other that does. */
function onlyOne(statement: Node, what: string, fits: (node: Node) => boolean): Node {
  const found: Node[] = [];
  for (const node of nodesIn(statement)) {
    const isInside = found.some(({ end }) => node.start < end);
    if (fits(node) && !isInside) found.push(node);
  }
  const [first] = found;
  if (first && found.length === 1) return first;
  throw new Error(`The marked statement has ${what} ${found.length} times, not once.`);
}

function isComparison({ type, operator }: Node): boolean {
  return type === "BinaryExpression" && /^[<>]=?$/.test(operator as string);
}

function isOf(node: Node, terms: Terms): boolean {
  const { type, operator } = node;
  if (terms === "?:") return type === "ConditionalExpression";
  if (terms === "max" || terms === "min") return mathOf(node) === terms;
  if (terms === "call") return type === "CallExpression" && mathOf(node) === null;
  if (terms === "+") return type === "BinaryExpression" && /^[+-]$/.test(operator as string);
  return /^(Binary|Logical)Expression$/.test(type) && operator === terms;
}

/** The function of `Math` that a node calls. */
function mathOf({ type, callee }: Node): string | null {
  if (type !== "CallExpression") return null;
  const { object, property } = callee as {
    object?: { name?: string };
    property?: { name: string };
  };
  return object?.name === "Math" && property ? property.name : null;
}

function termsOf(node: Node, terms: Terms): Node[] {
  if (terms === "?:") return [node.consequent as Node, node.alternate as Node];
  if (node.type === "CallExpression") return node.arguments as Node[];
  const [left, right] = [node.left as Node, node.right as Node];
  return isOf(left, terms) ? [...termsOf(left, terms), right] : [left, right];
}

function reworded(code: string, text: string | RegExp, becomes: string): string {
  const parts = code.split(text);
  if (parts.length !== 2) {
    throw new Error(`The marked statement has ${text} ${parts.length - 1} times, not once.`);
  }
  return parts.join(becomes);
}
