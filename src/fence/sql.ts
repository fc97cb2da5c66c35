import { type Fenced, StaleTokenError } from "../errors/index.js";

/** Runs a statement in the transaction of the write, such as `query` of a client of pg. */
export type RunsStatement = (text: string, values: (string | bigint)[]) => PromiseLike<unknown>;

/** The error of the function `holdfast.fence` for a token that is not the highest. */
const STALE = "LF001";

/**
 * Throws `StaleTokenError` where a fenced statement has changed no row. The statement sets the
 * column to the token, and has the condition that the column is not higher.
 *
 * @example
 * import { assertWritten } from "holdfast/fence";
 *
 * const client = await pool.connect();
 * const { rowCount } = await client.query(
 *   "update invoice set total = $1, fence = $2 where id = 42 and fence <= $2",
 *   [7, lease.token],
 * );
 * assertWritten(rowCount, lease);
 */
export function assertWritten(changedRows: number | null | undefined, lease: Fenced): void {
  if (!changedRows) throw new StaleTokenError(lease);
}

/**
 * The fence of the Postgres store, in your own transaction: call it first. Throws `StaleTokenError`
 * where a later holder was there. `namespace`: that of the lock, where it has one.
 *
 * @example
 * import { postgresFence } from "holdfast/fence";
 *
 * const client = await pool.connect();
 * await client.query("begin");
 * await postgresFence((text, values) => client.query(text, values), lease);
 * await client.query("update invoice set total = 7 where id = 42");
 * await client.query("commit");
 */
export async function postgresFence(
  query: RunsStatement,
  lease: Fenced,
  namespace = "",
): Promise<void> {
  const { name, token } = lease;
  try {
    // As text: not every client can send a bigint.
    await query("select holdfast.fence($1, $2::bigint, $3)", [name, `${token}`, namespace]);
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code !== STALE) throw error;
    throw new StaleTokenError(lease, null, error);
  }
}
