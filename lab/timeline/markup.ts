type Value = string | number | undefined;

/** One element; attributes without a value are left out, numbers are rounded to a tenth. */
export function element(
  name: string,
  attributes: Readonly<Record<string, Value>>,
  ...content: readonly string[]
): string {
  const words = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [` ${key}="${escaped(typeof value === "number" ? tenth(value) : value)}"`],
  );
  const start = `<${name}${words.join("")}`;
  return content.length === 0 ? `${start}/>` : `${start}>${content.join("")}</${name}>`;
}

/** Text for XML and HTML. A character that XML cannot carry becomes a replacement sign. */
export function escaped(text: string): string {
  return text
    .replace(UNWRITABLE, "\uFFFD")
    .replace(/&/g, "&amp;")
    .replace(/</g, "&lt;")
    .replace(/>/g, "&gt;")
    .replace(/"/g, "&quot;");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids exactly these
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;

/** Numbers in a picture: a tenth of a pixel is enough, and the same on every machine. */
export function tenth(value: number): string {
  return String(Math.round(value * 10) / 10);
}
