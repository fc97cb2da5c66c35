import type { LockView } from "../contract/store.js";
import { InvalidOptionError } from "../errors/index.js";
import type { RevokedEvent } from "../events/events.js";
import { events } from "../events/publish.js";
import type { LeaseClient } from "../lease/lease-client.js";
import type { Deadlock } from "../locks/deadlocks.js";
import { knownOptions, unknownWord } from "../options/known-options.js";
import { checkName } from "../options/options.js";
import { withJson } from "../rules/json.js";
import { SPACES, type Space } from "../rules/name.js";
import { reasonProblem } from "../rules/reason.js";

/** Which lease to end, and why. */
export interface RevokeOptions {
  /** The token of the lease to end. A newer lease of the same name is not affected. */
  readonly token: bigint;
  /** Shown to the holder and in logs; at most 1,024 bytes. */
  readonly reason: string;
}

/** Which names to list. */
export interface ListOptions {
  /** Lists only names that begin with this text. Default: all names. */
  readonly prefix?: string | undefined;
  /** Default `"lock"`. */
  readonly space?: Space | undefined;
}

const LIST_EXAMPLE = 'must be an object: { prefix: "invoice:" }';
const REVOKE_EXAMPLE = "must be an object: { token, reason }";

/** Shows the state of locks in a store, and ends leases of any process. */
export class Inspection {
  readonly #client: LeaseClient;

  constructor(client: LeaseClient) {
    this.#client = client;
  }

  async inspect(name: string, space: Space = "lock"): Promise<LockView> {
    checkName(name);
    checkSpace(space);
    return viewWithJson(await this.#client.look(() => this.#client.store.inspect(space, name)));
  }

  async *list(options?: ListOptions): AsyncGenerator<LockView, void> {
    const { prefix, space = "lock" } = knownOptions(options, ["prefix", "space"], LIST_EXAMPLE);
    checkSpace(space);
    yield* this.#list(space, checkPrefix(prefix));
  }

  async *#list(space: Space, prefix: string): AsyncGenerator<LockView, void> {
    this.#client.assertOpen();
    try {
      for await (const view of this.#client.store.list(space, prefix)) yield viewWithJson(view);
    } catch (error) {
      throw await this.#client.explained(error);
    }
  }

  async findDeadlocks(options?: Pick<ListOptions, "prefix">): Promise<Deadlock[]> {
    const { prefix } = knownOptions(options, ["prefix"], LIST_EXAMPLE);
    const { deadlocksOf } = await import("../locks/deadlocks.js");
    const views: LockView[] = [];
    for await (const view of this.#list("lock", checkPrefix(prefix))) views.push(view);
    return deadlocksOf(views, this.#client.localWaits());
  }

  async revoke(name: string, options: RevokeOptions, space: Space = "lock"): Promise<boolean> {
    checkName(name);
    checkSpace(space);
    this.#client.assertOpen();
    const { token, reason } = knownOptions(options, ["token", "reason"], REVOKE_EXAMPLE);
    if (typeof token !== "bigint") {
      throw new InvalidOptionError(
        "token",
        token,
        "must be the token (bigint) of the lease to end",
      );
    }
    const problem = reasonProblem(reason);
    if (problem) throw new InvalidOptionError("reason", reason, problem);
    const { store } = this.#client;
    const isDone = await this.#client.look(() => store.revoke(space, name, token, reason));
    if (isDone && events.revoked.hasSubscribers) {
      const { name: storeName, namespace = "" } = store;
      const event = { name, space, store: storeName, namespace, token, reason };
      events.revoked.publish(withJson(event satisfies RevokedEvent));
    }
    return isDone;
  }
}

function viewWithJson({ holders, mark, ...view }: LockView): LockView {
  return withJson({ ...view, holders: holders.map(withJson), mark: mark && withJson(mark) });
}

function checkSpace(space: unknown): void {
  if (SPACES.includes(space as Space)) return;
  throw unknownWord("space", "space", String(space), SPACES);
}

function checkPrefix(prefix: unknown = ""): string {
  if (typeof prefix === "string") return prefix;
  throw new InvalidOptionError("prefix", prefix, "must be a string");
}
