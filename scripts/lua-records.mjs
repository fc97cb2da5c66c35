// The records of a store's Lua: texts whose fields stand at fixed places. `lua/records.lua`
// declares them. The Lua and the TypeScript of the store name fields instead of places.
//
//   sub(sums, SUMS.bound)          sub(sums, 2, 17)    a field
//   sub(sums, SUMS.kind.to.bound)  sub(sums, 1, 17)    from one field to another
//   SUMS.bound.start               2                   its first byte
//   SUMS.bound.before              1                   how many bytes stand before it
//   SUMS.bound.size                16                  how many bytes it has
//   SUMS.length                    113                 how many bytes the record has

/**
 * Places count from 1, as in Lua. A field without an end reaches to the end of the text.
 *
 * @typedef {{ start: number, end: number }} Field
 * @typedef {Map<string, Field>} Fields
 * @typedef {Map<string, Fields>} Records
 */

const USE = /(?<![.\w'])([A-Z][A-Z_]+)\.(\w+)(?:\.(start|before|size)\b|\.to\.(\w+))?/g;
const ENDLESS = Number.POSITIVE_INFINITY;

/**
 * @param {string} file
 * @param {string} text
 * @returns {Records}
 */
export function readRecords(file, text) {
  /** @type {Records} */
  const records = new Map();
  /** @type {Fields} */
  let fields = new Map();
  for (const [index, line] of text.split("\n").entries()) {
    const code = line.replace(/ *--.*/, "");
    const [, record] = /^([A-Z_]+) = \{$/.exec(code) ?? [];
    const [, name, size = ""] = /^ {2}(\w+) = (\d+|[A-Z_]+),$/.exec(code) ?? [];
    if (record) {
      fields = new Map();
      records.set(record, fields);
      continue;
    }
    const inner = records.get(size) ?? new Map();
    const length = size === "REST" ? ENDLESS : Number(size) || lengthOf(inner);
    const isField = name && !fields.has(name) && length > 0 && lengthOf(fields) < ENDLESS;
    if (isField) addField(fields, name, length, inner);
    else if (code !== "" && code !== "}") throw new Error(`${file}:${index + 1}: is no field`);
  }
  return records;
}

/**
 * @param {Fields} fields
 * @param {string} name
 * @param {number} length
 * @param {Fields} inner the fields of the record that the new field is
 */
function addField(fields, name, length, inner) {
  const before = lengthOf(fields);
  fields.set(name, { start: before + 1, end: before + length });
  for (const [key, { start, end }] of inner) {
    fields.set(key, { start: before + start, end: before + end });
  }
}

/** @param {Fields} fields */
function lengthOf(fields) {
  return Math.max(0, ...[...fields.values()].map(({ end }) => end));
}

/**
 * The Lua with places for the names of fields. An error names the file and the line.
 *
 * @param {string} file
 * @param {string} lua
 * @param {Records} records
 */
export function withPlaces(file, lua, records) {
  const lines = lua.split("\n").map((line, index) =>
    line.replace(USE, (use, record, name, part, to) => {
      const places = placesOf(records.get(record) ?? new Map(), name, part, to);
      if (places) return places;
      throw new Error(`${file}:${index + 1}: no record has ${use}`);
    }),
  );
  return lines.join("\n");
}

/**
 * Null for what the record does not have.
 *
 * @param {Fields} fields
 * @param {string} name
 * @param {string | undefined} part
 * @param {string | undefined} to
 */
function placesOf(fields, name, part, to) {
  const length = lengthOf(fields);
  if (name === "length" && length > 0 && length < ENDLESS) return `${length}`;
  const field = fields.get(name);
  const last = fields.get(to ?? name);
  if (!field || !last) return null;
  const { start } = field;
  const { end } = last;
  if (part === "start") return `${start}`;
  if (part === "before") return `${start - 1}`;
  if (part === "size") return end === ENDLESS ? null : `${end - start + 1}`;
  return end === ENDLESS ? `${start}` : `${start}, ${end}`;
}

/**
 * A record for TypeScript: where `slice` begins and ends.
 *
 * @param {Records} records
 * @param {string} name
 */
export function recordModule(records, name) {
  const fields = [...(records.get(name) ?? [])].map(([key, { start, end }]) => {
    return `  ${key}: [${end === ENDLESS ? start - 1 : `${start - 1}, ${end}`}],`;
  });
  return [`export const ${name} = {`, ...fields, "} as const;"].join("\n");
}
