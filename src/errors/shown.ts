/** A value as a message shows it: short, and without a throw whatever the value is. */
export function shown(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number" || value === undefined) return String(value);
  try {
    const text = JSON.stringify(value) ?? String(value);
    return text.length > 80 ? `${text.slice(0, 77)}...` : text;
  } catch {
    return String(value);
  }
}
