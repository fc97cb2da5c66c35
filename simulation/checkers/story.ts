import { type Entry, type Happening, History, type Mode } from "../history.js";

interface Terms {
  readonly name: string;
  readonly mode: Mode;
  readonly weight: number;
  readonly limit: number;
  readonly ttlMs: number;
  readonly renews: boolean;
  readonly graceMs: number;
  readonly longestMs: number;
  readonly turns: number;
  readonly listens: boolean;
  readonly withinMs: number;
  readonly waits: boolean;
}

/** The terms that a story does not give. */
const USUAL: Terms = {
  name: "a",
  mode: "exclusive",
  weight: 1,
  limit: 1,
  ttlMs: 1_000,
  renews: true,
  graceMs: 0,
  longestMs: Number.POSITIVE_INFINITY,
  turns: 32,
  listens: true,
  withinMs: Number.POSITIVE_INFINITY,
  waits: true,
};

/** A grant, as the store tells of it. */
interface GrantTerms {
  readonly name?: string;
  readonly span?: number;
  readonly isHandoff?: boolean;
  readonly remainingMs?: number;
  readonly clockUs?: number;
}

/** A history that a test writes, entry by entry. Process `p` has the leases `p/…`. */
export class Story {
  readonly #history = new History();
  #nowMs = 0;

  get entries(): readonly Entry[] {
    return this.#history.entries();
  }

  at(atMs: number): this {
    this.#nowMs = atMs;
    return this;
  }

  /** Any entry that has no method of its own. */
  happens(happening: Happening): this {
    this.#history.record(this.#nowMs, happening);
    return this;
  }

  asks(lease: string, terms: Partial<Terms> = {}): this {
    const { name, mode, weight, limit, withinMs, waits } = { ...USUAL, ...terms };
    const process = processOf(lease);
    const claim = { name, mode, weight, limit, withinMs, waits };
    return this.happens({ type: "asked", process, lease, ...claim });
  }

  /** The store grants, and the program relies on it up to `untilMs`, unless something happens. */
  holds(lease: string, token: bigint, untilMs: number, terms: Partial<Terms> = {}): this {
    const { name } = { ...USUAL, ...terms };
    this.grants(`${lease} owner`, token, { name });
    return this.takes(lease, token, untilMs, terms);
  }

  /** The program holds by an earlier grant of the story. */
  takes(lease: string, token: bigint, untilMs: number, terms: Partial<Terms> = {}): this {
    const { withinMs: _, waits: __, ...claim } = { ...USUAL, ...terms };
    const process = processOf(lease);
    this.happens({ type: "held", process, lease, owner: `${lease} owner`, token, ...claim });
    return this.believes(lease, untilMs);
  }

  believes(lease: string, untilMs: number): this {
    return this.happens({ type: "believed", lease, untilMs });
  }

  probes(lease: string, holds = true): this {
    return this.happens({ type: "probed", lease, holds });
  }

  releases(lease: string): this {
    return this.happens({ type: "releasing", lease });
  }

  loses(lease: string, reason = "expired"): this {
    return this.happens({ type: "lost", lease, reason });
  }

  queues(owner: string): this {
    const client = processOf(owner);
    return this.happens({ type: "queued", name: USUAL.name, owner, client });
  }

  grants(owner: string, token: bigint, terms: GrantTerms = {}): this {
    const client = processOf(owner);
    const usual = { name: USUAL.name, span: 1, isHandoff: false, clockUs: Number(token) };
    const remainingMs = Number.POSITIVE_INFINITY;
    return this.happens({
      type: "granted",
      owner,
      client,
      token,
      remainingMs,
      ...usual,
      ...terms,
    });
  }

  extends(token: bigint, remainingMs: number = Number.POSITIVE_INFINITY): this {
    return this.happens({ type: "extended", name: USUAL.name, token, remainingMs });
  }

  withdraws(owner: string, buriedMs = 0): this {
    return this.happens({ type: "withdrawn", name: USUAL.name, owner, buriedMs });
  }
}

function processOf(lease: string): string {
  return lease.slice(0, lease.indexOf("/"));
}
