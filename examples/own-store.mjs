// A store of your own in one file, and the conformance kit that tells whether it behaves. It polls,
// knows exclusive locks only, and keeps them in a Map; what decides atomically could stand there.
import { Holdfast } from "holdfast";
import { conformance } from "holdfast/conformance";
import { deadlineOf, localRuntime, StoreGrant } from "holdfast/store";

const TRAITS = {
  scope: "process",
  modes: ["exclusive"],
  fifo: false,
  tokenSpan: false,
  transferable: false,
  marks: false,
  minTtlMs: 10,
};

/** The server: all stores of one table exclude each other. */
class Table {
  rows = new Map();
  stores = new Set();
  lastToken = 0;
}

/** Whoever learns that the grant is over calls its `end`. */
class MapGrant extends StoreGrant {
  span = 1;
  locator = null;

  constructor(claim, token, deadlineMs) {
    super(claim, deadlineMs);
    this.token = token;
  }
}

class MapStore {
  name = "map";
  traits = TRAITS;
  runtime = localRuntime;
  #table;
  #grants = new Map();

  constructor(table) {
    this.#table = table;
    table.stores.add(this);
  }

  async acquire(claim, wait) {
    for (;;) {
      const outcome = this.#take(claim);
      if (outcome.type === "granted" || !wait) return outcome;
      wait.report(outcome.holder, null);
      await this.#pause(wait);
      // What ended in the pause must not be granted any more.
      if (wait.ended) return outcome;
    }
  }

  async renew(grants) {
    return grants.map(({ grant, ttlMs }) => {
      const sentMs = this.runtime.clock.nowMs();
      // After the own deadline somebody else may have been promised the lock.
      if (sentMs >= grant.deadlineMs) return ended(grant, "expired");
      const row = this.#rowOf(grant);
      if (!row) return ended(grant, "missing");
      row.expiryMs = Math.max(row.expiryMs, sentMs + ttlMs);
      grant.extend(deadlineOf(sentMs, row.expiryMs - sentMs, ttlMs));
      return { type: "renewed", waiting: false };
    });
  }

  async release(grant) {
    this.#grants.delete(grant.claim.owner);
    const isHeld = this.#rowOf(grant) !== undefined;
    if (isHeld) this.#table.rows.delete(keyOf(grant.claim));
    return isHeld;
  }

  async resume() {
    return null;
  }

  /** Never called: its leases are not transferable. */
  detach() {}

  async inspect(space, name) {
    const row = this.#live(keyOf({ space, name }));
    return { space, name, holders: row ? [this.#view(row)] : [], waiters: [], mark: null };
  }

  async *list(space, prefix) {
    for (const { claim } of [...this.#table.rows.values()]) {
      const isMeant = claim.space === space && claim.name.startsWith(prefix);
      if (isMeant && this.#live(keyOf(claim))) yield this.inspect(space, claim.name);
    }
  }

  async revoke(space, name, token, reason) {
    const row = this.#live(keyOf({ space, name }));
    if (row?.token !== token) return false;
    this.#table.rows.delete(keyOf(row.claim));
    for (const store of this.#table.stores) store.#onRevoked(row.claim.owner, reason);
    return true;
  }

  async close() {
    this.#table.stores.delete(this);
  }

  /** The one step that has to be atomic. */
  #take(claim) {
    const sentMs = this.runtime.clock.nowMs();
    const row = this.#live(keyOf(claim));
    if (row) return { type: "busy", holder: this.#view(row), mark: null };
    // It rises with the clock, and on its own when the clock is set back.
    this.#table.lastToken = Math.max(this.runtime.clock.wallUs(), this.#table.lastToken + 1);
    const token = BigInt(this.#table.lastToken);
    const expiryMs = sentMs + claim.ttlMs;
    this.#table.rows.set(keyOf(claim), { claim, token, grantedMs: sentMs, expiryMs });
    // Before the expiry: clocks run apart, and timers fire early.
    const deadlineMs = deadlineOf(sentMs, claim.ttlMs, claim.ttlMs);
    const grant = new MapGrant(claim, token, deadlineMs);
    this.#grants.set(claim.owner, grant);
    return grant;
  }

  #live(key) {
    const row = this.#table.rows.get(key);
    if (row && row.expiryMs > this.runtime.clock.nowMs()) return row;
    this.#table.rows.delete(key);
    return undefined;
  }

  #rowOf({ claim }) {
    const row = this.#live(keyOf(claim));
    return row?.claim.owner === claim.owner ? row : undefined;
  }

  #onRevoked(owner, detail) {
    const grant = this.#grants.get(owner);
    this.#grants.delete(owner);
    grant?.end({ reason: "revoked", detail });
  }

  /** Until the next try, or the end of the wait. */
  #pause(wait) {
    const { timers, random } = this.runtime;
    return new Promise((resume) => {
      const timer = timers.after(5 + 5 * random.fraction(), resume, true);
      wait.onEnd(() => {
        timer.cancel();
        resume();
      });
    });
  }

  #view({ claim, token, grantedMs, expiryMs }) {
    const nowMs = this.runtime.clock.nowMs();
    const { mode, weight, meta } = claim;
    const [heldMs, remainingMs] = [nowMs - grantedMs, expiryMs - nowMs];
    return { token, mode, weight, limit: null, meta, heldMs, remainingMs };
  }
}

/** The answer to the renewal of a grant that is over. */
function ended(grant, reason) {
  grant.end({ reason, detail: "" });
  return { type: "ended" };
}

const keyOf = ({ space, name }) => `${space}:${name}`;

const locks = new Holdfast(new MapStore(new Table()));
console.log(await locks.mutex("first").run(() => "it locks"));
await locks.close();

const tables = new Map();
const tableOf = (namespace) => {
  if (!tables.has(namespace)) tables.set(namespace, new Table());
  return tables.get(namespace);
};
const cases = conformance({
  traits: TRAITS,
  open: async (namespace) => new MapStore(tableOf(namespace)),
  leftovers: async (namespace) => [...tableOf(namespace).rows.keys()],
});

// Eight at a time, then those that block the event loop, one by one.
const due = cases.filter(({ skip }) => skip === null);
const together = due.filter(({ alone }) => !alone);
const failures = [];
async function work(queue) {
  for (let next = queue.shift(); next; next = queue.shift()) {
    await next.run().catch((error) => failures.push(`${next.title}: ${error.message}`));
  }
}
await Promise.all(Array.from({ length: 8 }, () => work(together)));
await work(due.filter(({ alone }) => alone));

console.log(due.length > 30 ? "the kit had enough to do" : `only ${due.length} cases`);
console.log(failures.length === 0 ? "it behaves" : failures.join("\n"));
