import { describe, expect, it } from "vitest";
import { EXTEND, GIVE, type Script, scriptRunner, TAKE } from "./plain-keys.js";

const SYNTAX = "ERR syntax error";
const NO_EVAL = "NOPERM User u has no permissions to run the 'evalsha' command";
const NO_SET = "NOPERM User u has no permissions to run the 'set' command";
const NO_EVAL_HERE = "ERR unknown command 'evalsha', with args beginning with: ";

/** A runner on a server with these answers; texts that begin in capitals are errors. */
function runnerOn(answers: Record<string, unknown>) {
  const sent: string[] = [];
  let changes = 0;
  const send = async (_key: string, command: string): Promise<unknown> => {
    sent.push(command);
    const answer = answers[command];
    if (typeof answer === "string" && /^[A-Z]+ /.test(answer)) throw new Error(answer);
    return answer;
  };
  const run = scriptRunner(send, () => changes, true);
  return {
    ask: (script: Script, ...keys: string[]) => run(script, keys, ["mine", "5000", "0"]),
    sent: () => sent.splice(0).join(" "),
    reconnect(next: Record<string, unknown>) {
      changes += 1;
      Object.assign(answers, next);
    },
  };
}

describe("deletes one key", () => {
  it("natively where the server can", async () => {
    const server = runnerOn({ set: "OK" });
    expect(await server.ask(GIVE, "a")).toBe(1);
    expect(server.sent(), "proves IFEQ").toBe("set set");
    expect(await server.ask(GIVE, "a")).toBe(1);
    expect(server.sent()).toBe("set");
  });

  it.each([SYNTAX, NO_SET])("by a script after: %s", async (refusal) => {
    const server = runnerOn({ set: refusal, evalsha: 1 });
    expect(await server.ask(GIVE, "a")).toBe(1);
    expect(server.sent()).toBe("set evalsha");
    expect(await server.ask(GIVE, "a")).toBe(1);
    expect(server.sent(), "remembered").toBe("evalsha");
    server.reconnect({ set: null });
    expect(await server.ask(GIVE, "a"), "another server").toBe(0);
    expect(server.sent()).toBe("set set");
  });

  it("by a script on the older server after a failover", async () => {
    const server = runnerOn({ set: "OK" });
    await server.ask(GIVE, "a");
    server.reconnect({ set: SYNTAX, evalsha: 1 });
    expect(await server.ask(GIVE, "a")).toBe(1);
  });

  it.each([
    "ERR value is not an integer or out of range",
    "LOADING Redis is loading the dataset in memory",
    "NOPERM No permissions to access a key",
    "READONLY You can't write against a read only replica.",
  ])("not in another way after: %s", async (failure) => {
    const server = runnerOn({ set: failure, evalsha: 1 });
    await expect(server.ask(GIVE, "a")).rejects.toThrow(failure);
    expect(server.sent()).toBe("set");
  });

  it("that has another type never", async () => {
    expect(await runnerOn({ set: "WRONGTYPE Operation against a key" }).ask(GIVE, "a")).toBe(0);
  });
});

describe.each([
  ["takes", TAKE],
  ["extends", EXTEND],
])("%s one key", (_title, script) => {
  it("by a script", async () => {
    const server = runnerOn({ evalsha: 1 });
    expect(await server.ask(script, "a")).toBe(1);
    expect(server.sent()).toBe("evalsha");
  });

  it.each([NO_EVAL, NO_EVAL_HERE])("natively after: %s", async (refusal) => {
    const server = runnerOn({ evalsha: refusal, set: null });
    expect(await server.ask(script, "a")).toBe(script === TAKE ? 1 : 0);
    expect(server.sent()).toBe("evalsha set set");
    await server.ask(script, "a");
    expect(server.sent(), "remembered").toBe("set");
  });

  it("not natively after a script that failed inside", async () => {
    const inside = "ERR ACL failure in script: User u has no permissions to run the 'set' command";
    const server = runnerOn({ evalsha: inside, set: "OK" });
    await expect(server.ask(script, "a")).rejects.toThrow(inside);
    expect(server.sent()).toBe("evalsha");
  });

  it("in no way on an old server without scripts, and says what is missing", async () => {
    const server = runnerOn({ evalsha: NO_EVAL, set: SYNTAX });
    await expect(server.ask(script, "a")).rejects.toThrow(NO_EVAL);
    expect(server.sent(), "takes nothing").toBe("evalsha set");
    await expect(server.ask(script, "a"), "again").rejects.toThrow(NO_EVAL);
  });
});

it("finds its own value where the client sent SET twice", async () => {
  expect(await runnerOn({ evalsha: NO_EVAL, set: "mine" }).ask(TAKE, "a")).toBe(-1);
  expect(await runnerOn({ evalsha: NO_EVAL, set: "theirs" }).ask(TAKE, "a")).toBe(0);
});

it("uses scripts alone for several keys", async () => {
  const server = runnerOn({ evalsha: NO_EVAL, set: "OK" });
  await expect(server.ask(GIVE, "a", "b")).rejects.toThrow(NO_EVAL);
  expect(server.sent()).toBe("evalsha");
});

/** A server with one connection, which answers in order. Without scripts, it refuses EVAL. */
function orderedServer(hasScripts: boolean) {
  const values = new Map<string, string>();
  const loaded = new Set<string>();
  let last: Promise<unknown> = Promise.resolve();
  const execute = (command: string, args: readonly string[]): unknown => {
    const [key = "", value = "", ...options] = command === "set" ? args : args.slice(2);
    if (command === "set" && options[0] === "NX") {
      const before = values.get(key) ?? null;
      if (before === null) values.set(key, value);
      return before;
    }
    if (command === "set") {
      if (values.get(key) !== value) return null;
      if (options.includes("PXAT")) values.delete(key);
      return "OK";
    }
    if (!hasScripts) throw new Error(NO_EVAL);
    const script = [TAKE, GIVE].find(({ hash, value }) => args[0] === hash || args[0] === value);
    if (command === "evalsha" && !loaded.has(args[0] ?? "")) throw new Error("NOSCRIPT");
    loaded.add(script?.hash ?? "");
    if (script === GIVE) return values.get(key) === value && values.delete(key) ? 1 : 0;
    if (values.has(key)) return 0;
    values.set(key, value);
    return 1;
  };
  const send = (_key: string, command: string, args: readonly string[]): Promise<unknown> => {
    last = last.then(
      () => execute(command, args),
      () => execute(command, args),
    );
    return last;
  };
  return { values, loaded, run: scriptRunner(send, () => 0, true) };
}

describe("a release behind the request that takes its key", () => {
  it("stays behind it where scripts are refused", async () => {
    const { values, run } = orderedServer(false);
    await Promise.all([run(TAKE, ["a"], ["mine", "5000"]), run(GIVE, ["a"], ["mine"])]);
    expect([...values]).toEqual([]);
  });

  it("stays behind it after SCRIPT FLUSH", async () => {
    const { values, loaded, run } = orderedServer(true);
    await run(TAKE, ["a"], ["first", "5000"]);
    await run(GIVE, ["a"], ["first"]);
    loaded.clear();
    await Promise.all([run(TAKE, ["a"], ["mine", "5000"]), run(GIVE, ["a"], ["mine"])]);
    expect([...values]).toEqual([]);
  });
});
