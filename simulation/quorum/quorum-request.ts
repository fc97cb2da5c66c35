/** What a client asks a node for, read from what it sends: requests.ts writes it. */
export interface VoteArgs {
  readonly owner: string;
  readonly ballot: number;
  readonly span: number;
  readonly ttlMs: number;
  readonly set: string;
  readonly waiter: string;
}

/** Behind the verb. The first ten digits of the terms say for how long to keep the ballot. */
export function readVote(args: readonly string[]): VoteArgs {
  const [owner = "", terms = "", record = "", set = "", waiter = ""] = args;
  return {
    owner,
    ballot: Number.parseInt(record, 10),
    span: Number(record.split(" ")[4]),
    ttlMs: Number(terms.slice(10)),
    set,
    waiter,
  };
}

export function readRelease(args: readonly string[]): {
  readonly owner: string;
  readonly ballot: number;
  readonly keepMs: number;
  readonly waiter: string;
} {
  const [owner = "", start = "", , , keepMs = "0", , waiter = ""] = args;
  return { owner, ballot: Number.parseInt(start, 10), keepMs: Number(keepMs), waiter };
}
