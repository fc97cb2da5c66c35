import assert from "node:assert/strict";
import type { Behaviour } from "../needs.js";
import { needMarks, needShared } from "../needs.js";

const LONGEST = 512;

/** Names that look alike, or that a store might store alike. All of them are different. */
const alike: readonly string[] = [
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

export const names: readonly Behaviour[] = [
  {
    title: "names that look alike are different locks, and inspect and list return them unchanged",
    async run(context) {
      assert.equal(new Set(alike).size, alike.length);
      const [a, b] = [await context.open(), await context.open()];
      const leases = await Promise.all(alike.map((name) => a.mutex(name).tryAcquire()));
      const refused = alike.filter((_, index) => leases[index] === null);
      assert.deepEqual(refused, [], "no name equals another one");
      const seconds = await Promise.all(alike.map((name) => b.mutex(name).tryAcquire()));
      const granted = alike.filter((_, index) => seconds[index] !== null);
      assert.deepEqual(granted, [], "every name is held");

      for (const [index, name] of alike.entries()) {
        assert.equal(leases[index]?.name, name);
        const view = await b.inspect(name);
        assert.equal(view.name, name);
        if (view.holders.length > 0) assert.equal(view.holders[0]?.token, leases[index]?.token);
      }
      const listed: string[] = [];
      for await (const view of b.list()) listed.push(view.name);
      assert.deepEqual(listed.sort(), [...alike].sort(), "every name is listed");
      await Promise.all(leases.map((lease) => lease?.release()));
    },
  },
  {
    title: "names that are empty, malformed or too long are refused before anything is sent",
    async run(context) {
      const locks = await context.open();
      const long = [
        "x".repeat(LONGEST + 1),
        "é".repeat(LONGEST / 2 + 1),
        "🔒".repeat(LONGEST / 4 + 1),
      ];
      const malformed = ["", "\ud800", "a\udc00b", "\udc00\ud800", ...long];
      for (const name of [...malformed, undefined, null, 7, {}, ["a"]] as string[]) {
        const invalid = { code: "HF_INVALID_OPTION", option: "name" };
        assert.throws(() => locks.mutex(name), invalid);
        assert.throws(() => locks.election(name), invalid);
        await assert.rejects(locks.inspect(name), invalid);
        await assert.rejects(locks.revoke(name, { token: 1n, reason: "test" }), invalid);
        if (!context.traits.modes.includes("shared")) continue;
        assert.throws(() => locks.readWrite(name), invalid);
        assert.throws(() => locks.semaphore(name, 2), invalid);
      }
    },
  },
  {
    title: "locks of different namespaces are different, even where namespace and name join alike",
    async run(context) {
      // Namespace and name, joined, give the same text.
      const [one, other] = [await context.open(), context.bind(await context.openStore("2"))];
      const lease = await one.mutex("2m").acquire();
      assert.ok(await other.mutex("m").tryAcquire());
      assert.ok(await other.mutex("2m").tryAcquire());
      assert.ok(await one.mutex("m").tryAcquire());
      lease.assertHeld();
      const listed: string[] = [];
      for await (const { name } of one.list()) listed.push(name);
      assert.deepEqual(listed.sort(), ["2m", "m"]);
    },
  },
  {
    title: "mutex, read-write lock and semaphore of one name are views of one lock",
    needs: needShared,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      const mutex = await a.mutex("m").acquire();
      assert.equal(await b.readWrite("m").read.tryAcquire(), null);
      assert.equal(await b.readWrite("m").write.tryAcquire(), null);
      assert.equal(await b.semaphore("m", 5).tryAcquire(), null);
      await mutex.release();

      const read = await a.readWrite("m").read.acquire();
      assert.equal(await b.mutex("m").tryAcquire(), null);
      const permit = await b.semaphore("m", 2).tryAcquire();
      assert.ok(permit, "a reader takes one permit");
      assert.equal(await b.semaphore("m", 2).tryAcquire(), null);
      await permit.release();
      await read.release();
      await context.untilFree(b, "m");
    },
  },
  {
    title: "a lock, an election and a once of the same name are independent",
    needs: needMarks,
    async run(context) {
      const [a, b] = [await context.open(), await context.open()];
      await a.mutex("m").acquire();
      await a.election("m").campaign();
      const result = await b.once("m", () => "ran", { keepMs: context.ttl.longMs });
      assert.equal(result.ran, true);
      assert.equal((await b.inspect("m")).holders.length, 1);
      assert.equal((await b.inspect("m", "election")).holders.length, 1);
      assert.equal((await b.inspect("m", "once")).holders.length, 0);
    },
  },
];
