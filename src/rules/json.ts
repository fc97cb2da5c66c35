/** The value as JSON can carry it: tokens, which are `bigint`, become decimal text. */
export function jsonOf(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}`;
  if (typeof value !== "object" || value === null || "toJSON" in value) return value;
  if (value instanceof Error) return errorJson(value);
  if (Array.isArray(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, jsonOf(field)]));
}

/** Other fields are left out: clients put the failed command and its arguments into them. */
function errorJson({ name, message, code }: Error & { code?: unknown }): object {
  return { name, message, code };
}

/** Gives an object a `toJSON`, so that `JSON.stringify` can write its tokens. */
export function withJson<T extends object>(value: T): T {
  return Object.defineProperty(value, "toJSON", { value: () => jsonOf({ ...value }) });
}
