import { beforeEach, describe, expect, it } from "vitest";
import { ManualRuntime, settled } from "../../../test/fixtures/manual-runtime.js";
import { isForeign } from "../../events/foreign-data.js";
import { CALL_TIMEOUT_MS } from "../../families/ledger/command-batcher.js";
import type { Command } from "../../rules/ledger-command.js";
import { Batches } from "./batches.js";
import type { Driver, OwnConnection, Statement } from "./client.js";
import { PrimaryConnection } from "./primary-connection.js";

/** A connection that a test answers. */
class Connection implements OwnConnection {
  readonly backendPid = 1;
  isOpen = true;
  readonly sent: { statement: Statement; answer(text: string): void; fail(e: unknown): void }[] =
    [];
  notice: (routine: string) => void = () => {};
  end: (cause?: unknown) => void = () => {};

  send(statement: Statement): Promise<string | null> {
    if (statement.text.includes("pg_backend_pid")) return Promise.resolve("UTF8 f t");
    return new Promise((answer, fail) => this.sent.push({ statement, answer, fail }));
  }

  onNotification(): void {}
  onNotice(listener: (routine: string) => void): void {
    this.notice = listener;
  }
  onClose(listener: (cause?: unknown) => void): void {
    this.end = listener;
  }
  close(): void {
    this.isOpen = false;
  }
}

const connections: Connection[] = [];
let refusals: Error[] = [];
let runtime: ManualRuntime;
let primary: PrimaryConnection;
let batches: Batches;
let setUps = 0;

beforeEach(() => {
  connections.length = 0;
  refusals = [];
  setUps = 0;
  runtime = new ManualRuntime();
  const driver: Driver = {
    servers: ["h:1"],
    open() {
      const refusal = refusals.shift();
      const connection = new Connection();
      if (!refusal) connections.push(connection);
      const opened = refusal ? Promise.reject(refusal) : Promise.resolve(connection);
      return { opened, abandon: () => connection.close() };
    },
  };
  primary = new PrimaryConnection(driver, runtime, async () => {});
  batches = new Batches(primary, runtime, {
    statement: (commands) => ({ text: commands.map(({ key }) => key).join(" ") }),
    read: (commands, text) => ({
      nowUs: Number(text),
      node: "n",
      replies: commands.map(() => ({ type: "revoked", done: true }) as const),
    }),
    async setUp() {
      setUps += 1;
    },
  });
});

function command(key: string): Command {
  return { type: "inspect", key };
}

function failure(code: string): Error {
  return Object.assign(new Error("said the server"), { code, severity: "ERROR" });
}

/** The last statement of the last connection. */
function last() {
  const sent = connections.at(-1)?.sent.at(-1);
  if (!sent) throw new Error("nothing was sent");
  return sent;
}

describe("batches", () => {
  it("send commands that come while the connection is busy together", async () => {
    const first = batches.run([command("a")]);
    await settled();
    const [second, third] = [
      batches.run([command("b"), command("c")]),
      batches.run([command("d")]),
    ];
    expect(connections[0]?.sent.map(({ statement }) => statement.text)).toEqual(["a"]);
    await runtime.advance(100);
    last().answer("1");
    expect((await first).replies).toHaveLength(1);
    expect(last().statement.text).toBe("b c d");
    last().answer("2");
    expect((await second).replies).toHaveLength(2);
    expect((await third).nowUs).toBe(2);
    // The time in the queue is no part of a lease.
    expect([(await first).sentMs, (await third).sentMs]).toEqual([1_000, 1_100]);
  });

  it("end a connection that does not answer, and go on with another one", async () => {
    const first = batches.run([command("a")]);
    await settled();
    await runtime.advance(CALL_TIMEOUT_MS - 1_000);
    const second = batches.run([command("b")]);
    const unknown = expect(first).rejects.toMatchObject({ outcome: "unknown", retryable: true });
    await runtime.advance(2_000);
    await unknown;
    expect(connections.map(({ isOpen }) => isOpen)).toEqual([false, true]);
    expect(last().statement.text).toBe("b");
    last().answer("1");
    await second;
  });

  it("do not send commands whose calls have failed by then", async () => {
    const first = batches.run([command("a")]);
    await settled();
    const second = expect(batches.run([command("b")])).rejects.toThrow("not sent in time");
    await Promise.all([expect(first).rejects.toThrow(), runtime.advance(CALL_TIMEOUT_MS + 100)]);
    const third = batches.run([command("c")]);
    await runtime.advance(100);
    await second;
    expect(last().statement.text).toBe("c");
    last().answer("1");
    await third;
  });

  it("are unknown where the connection ends, and repeated where they were not sent", async () => {
    const first = batches.run([command("a")]);
    await settled();
    const second = batches.run([command("b")]);
    connections[0]?.end(new Error("reset"));
    await expect(first).rejects.toMatchObject({ outcome: "unknown" });
    await runtime.advance(100);
    last().answer("1");
    expect((await second).nowUs).toBe(1);
  });

  it("are sent again after a collision, but not for ever", async () => {
    const run = batches.run([command("a")]);
    await settled();
    last().fail(failure("40001"));
    await settled();
    last().answer("1");
    await run;
    const unlucky = batches.run([command("a")]);
    const refused = expect(unlucky).rejects.toMatchObject({ outcome: "not_applied" });
    for (let round = 0; round < 6; round += 1) {
      await settled();
      last().fail(failure("40P01"));
    }
    await refused;
    expect(connections[0]?.sent).toHaveLength(8);
  });

  it("say where the damaged row is, if they are about one name", async () => {
    const run = batches.run([command("l:a")]);
    await settled();
    last().fail(failure("22003"));
    await expect(run).rejects.toSatisfy(isForeign);
    await expect(run).rejects.toThrow('the row of "l:a" in holdfast.name');
  });

  it("set the database up once, where it is not", async () => {
    const run = batches.run([command("a")]);
    const refused = expect(run).rejects.toMatchObject({ outcome: "not_applied", retryable: false });
    for (let round = 0; round < 2; round += 1) {
      await settled();
      last().fail(failure("42883"));
    }
    await refused;
    expect(setUps).toBe(1);
  });

  it("are unknown where the server gave up waiting for its standbys", async () => {
    const run = batches.run([command("a")]);
    await settled();
    connections[0]?.notice("SyncRepWaitForLSN");
    last().answer("1");
    await expect(run).rejects.toMatchObject({ outcome: "unknown" });
  });

  it("fail with the reason why there is no connection, and run when there is one", async () => {
    refusals = [new Error("refused")];
    await expect(batches.run([command("a")])).rejects.toMatchObject({ outcome: "not_applied" });
    expect(primary.trouble?.message).toContain("refused");
    const next = batches.run([command("b")]);
    await runtime.advance(100);
    expect(primary.trouble).toBeNull();
    last().answer("1");
    await next;
  });

  it("fail when the store is closed", async () => {
    const run = batches.run([command("a")]);
    await settled();
    primary.close();
    await expect(run).rejects.toMatchObject({ outcome: "unknown" });
    await expect(batches.run([command("b")])).rejects.toThrow("closed");
    expect(runtime.keepsAlive).toBe(false);
  });
});

describe("a silent connection", () => {
  it("is asked from time to time, and replaced where it does not answer", async () => {
    await primary.ready();
    await runtime.advance(11_000);
    last().answer("1");
    await runtime.advance(20_000);
    expect(connections).toHaveLength(1);
    await runtime.advance(CALL_TIMEOUT_MS + 100);
    expect(connections).toHaveLength(2);
    primary.close();
  });
});
