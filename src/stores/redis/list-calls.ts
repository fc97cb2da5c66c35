/** A name that the register has, as a list finds it. */
export interface Listed {
  readonly shard: string;
  readonly key: string;
  /** Its state is in a hash of its own. */
  readonly hasHash: boolean;
}

/** So many names share a call: of lone holders, and where there may be many holders and waiters. */
const MOST_LONE = 100;
const MOST_HASHES = 10;

/** The names that each call of a list looks at: all of one shard, and not too many. */
export function listCalls(names: readonly Listed[]): Listed[][] {
  const calls: Listed[][] = [];
  const open = new Map<string, Listed[]>();
  for (const name of names) {
    const kind = `${name.hasHash} ${name.shard}`;
    let call = open.get(kind);
    if (!call || call.length === (name.hasHash ? MOST_HASHES : MOST_LONE)) {
      call = [];
      calls.push(call);
      open.set(kind, call);
    }
    call.push(name);
  }
  return calls;
}
