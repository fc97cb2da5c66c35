import { expect, it } from "vitest";
import { PgStatement } from "./pg.js";

/** A connection that keeps what a statement sends. */
function connectionWith(parsedStatements: Record<string, string>) {
  const sent: string[] = [];
  const note = (what: string) => () => void sent.push(what);
  const stream = { cork: note("cork"), uncork: note("uncork") };
  const calls = { parse: note("parse"), bind: note("bind"), execute: note("execute") };
  const connection = { stream, parsedStatements, ...calls, sync: note("sync") };
  return { sent, connection: { ...connection, sendCopyFail: note("fail") } };
}

function submitted(parsedStatements: Record<string, string>) {
  const { sent, connection } = connectionWith(parsedStatements);
  const answers: unknown[] = [];
  const add = (answer: unknown): void => void answers.push(answer);
  const statement = new PgStatement({ name: "n", text: "select $1", values: ["v"] }, add, add);
  statement.submit(connection);
  return { sent, answers, statement };
}

it("is parsed once for each connection, and sent in one piece without a description", () => {
  expect(submitted({}).sent).toEqual(["cork", "parse", "bind", "execute", "sync", "uncork"]);
  const known = submitted({ n: "select $1" });
  expect(known.sent).toEqual(["cork", "bind", "execute", "sync", "uncork"]);
});

it("answers with the text of its row when the server is ready, or with null", () => {
  const { statement, answers } = submitted({});
  statement.handleDataRow({ fields: ["text", "other"] });
  expect(answers).toEqual([]);
  statement.handleReadyForQuery();
  expect(answers).toEqual(["text"]);
  const empty = submitted({});
  empty.statement.handleReadyForQuery();
  expect(empty.answers).toEqual([null]);
});

it("fails with the error of the server", () => {
  const { statement, answers } = submitted({});
  const error = new Error("refused");
  statement.handleError(error);
  expect(answers).toEqual([error]);
});
