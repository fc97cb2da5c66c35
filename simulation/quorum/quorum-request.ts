/** The request for a vote, read from its arguments: codec.ts writes them. */
export interface VoteArgs {
  readonly owner: string;
  readonly ballot: number;
  readonly span: number;
  readonly ttlMs: number;
  readonly setId: string;
  readonly channel: string;
  /** "" where the client does not wait. */
  readonly waiter: string;
}

/** Reads the arguments behind the verb. */
export function readVote(args: readonly string[]): VoteArgs {
  const [terms = "", record = "", id = ""] = args;
  const [ballot, , owner = "", , span, , channel = ""] = record.split(" ");
  return {
    owner,
    ballot: Number(ballot),
    span: Number(span),
    ttlMs: Number(terms.slice(30)),
    setId: terms.slice(14, 30),
    channel,
    waiter: id === "" ? "" : `${channel}/${id}`,
  };
}

export function readRelease(args: readonly string[]): {
  readonly owner: string;
  readonly ballot: number;
  readonly keepMs: number;
  readonly waiter: string;
} {
  const [start = "", , , keepMs = "0", , waiter = ""] = args;
  const [ballot, , owner = ""] = start.split(" ");
  return { owner, ballot: Number(ballot), keepMs: Number(keepMs), waiter };
}

/** The verb `renew` of each lease in a call that renews many. */
export function readRenewals(
  keys: readonly string[],
  [, setId = "", channel = "", ...terms]: readonly string[],
): { readonly name: string; readonly verb: readonly string[] }[] {
  return Array.from({ length: terms.length / 4 }, (_, at) => ({
    name: keys[2 * at + 1] ?? "",
    verb: ["renew", setId, ...terms.slice(4 * at, 4 * at + 4), channel],
  }));
}
