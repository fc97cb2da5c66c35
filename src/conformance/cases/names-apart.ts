import assert from "node:assert/strict";
import type { Behaviour } from "../behaviour.js";

const LONGEST = 512;

/** No two of these are one, however alike they look or however a store may write them. */
const names: readonly string[] = [
  ..."{} {a} {a}b {a}{b} / a/ /a a/b a//b a:b : :a a: a::b a-b a_b a.b . .. ../a a/../b".split(" "),
  ...`' " \` '' "" a'b a"b ; -- \\ \\\\ a\\b $a \${a} $(a)`.split(" "),
  ..."% %2F %25 %a a%b * ? [a] ~ # & | !".split(" "),
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "null", "undefined"],
  ...["a", "A", "a ", " a", " ", "  ", "\t", "\n", "a\n", "\r\n", "\0", "a\0", "a\0b", "\u007f"],
  ...["0", "00", "-0", "1", "01", "1.0", "1e0", "true", "NaN"],
  ...["lock", "l:a", "lock:a", "election:a", "once:a", "holders", "a:holders", "a:queue"],
  ...["é", "e\u0301", "É", "ß", "ss", "ﬁ", "fi", "I", "i", "İ", "ı", "ａ", "а"],
  ...["\u200b", "a\u200b", "\ufeff", "\ufeffa", "\u00a0", "\u2028", "\ufffd", "🔒", "🔓", "👨‍👩‍👧"],
  ...["中文", "العربية", "\u{10ffff}", "\uffff", "\ue000"],
  "x".repeat(LONGEST),
  `${"x".repeat(LONGEST - 1)}y`,
  "x".repeat(LONGEST - 1),
  "🔒".repeat(LONGEST / 4),
  `${"🔒".repeat(LONGEST / 4 - 1)}🔓`,
];

export const namesApart: Behaviour = {
  title: "names that look alike are different locks, and come back as they were given",
  async run(context) {
    assert.equal(new Set(names).size, names.length);
    const [a, b] = [await context.open(), await context.open()];
    const leases = await Promise.all(names.map((name) => a.mutex(name).tryAcquire()));
    const refused = names.filter((_, index) => leases[index] === null);
    assert.deepEqual(refused, [], "none of these is one with another");
    const seconds = await Promise.all(names.map((name) => b.mutex(name).tryAcquire()));
    const granted = names.filter((_, index) => seconds[index] !== null);
    assert.deepEqual(granted, [], "all of these are held");

    for (const [index, name] of names.entries()) {
      assert.equal(leases[index]?.name, name);
      const view = await b.inspect(name);
      assert.equal(view.name, name);
      if (view.holders.length > 0) assert.equal(view.holders[0]?.token, leases[index]?.token);
    }
    const listed: string[] = [];
    for await (const view of b.list()) listed.push(view.name);
    assert.deepEqual(listed.sort(), [...names].sort(), "all of them are listed");
    await Promise.all(leases.map((lease) => lease?.release()));
  },
};
