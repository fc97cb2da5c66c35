import type { Request } from "../../src/rules/fits.js";

/** An entry in the store, named by its owner. */
export interface Place extends Request {
  readonly id: string;
  readonly client: string;
  /** The revision that made it. */
  readonly token: number;
  readonly isWritten: boolean;
}

export interface EntryOwner {
  readonly id: string;
  readonly client: string;
  phase: "idle" | "entering" | "waiting" | "held" | "left";
  /** Its request to enter has no answer yet. */
  isInDoubt: boolean;
  isLeaving: boolean;
  /** The entry whose end it waits to hear of, "*" for any; "+" where being written counts, too. */
  watch: string;
  hadLimits: boolean;
}

/** The session of a client: in the store, and as the client knows it. */
export interface SessionSide {
  readonly client: string;
  untilTick: number;
  /** The revision of the key that every request to enter is compared with. */
  guard: number;
  knownGuard: number;
  deadlineMs: number;
  keptAt: number;
}

export type SequencerVerb = "enter" | "leave" | "list" | "tell" | "keep-alive";

export interface SequencerMessage {
  readonly verb: SequencerVerb | "event";
  readonly who: string;
  readonly guard: number;
  readonly sentMs: number;
  /** Null on the way to the store. */
  readonly answer: SequencerAnswer | null;
}

export interface SequencerAnswer {
  readonly type: "listed" | "refused" | "done" | "kept" | "of an old term";
  readonly places: readonly Place[];
  readonly guard: number;
}

export interface SequencerBudget {
  ticks: number;
  faults: number;
  elections: number;
}

/** The store, the clients and what is between them, at one moment. */
export class SequencerScene {
  tick = 0;
  revision = 0;
  term = 0;
  places: readonly Place[] = [];
  owners: EntryOwner[] = [];
  sessions: SessionSide[] = [];
  net: SequencerMessage[] = [];
  budget: SequencerBudget;
  isCalm = false;
  /** Whether waiters look by themselves: they must not need to where every message arrives. */
  looks = false;
  departed: readonly string[] = [];
  highestToken = 0;
  wrong: string | null = null;

  constructor(budget: SequencerBudget) {
    this.budget = budget;
  }

  copy(): SequencerScene {
    const copy = new SequencerScene({ ...this.budget });
    Object.assign(copy, this, { budget: copy.budget });
    copy.owners = this.owners.map((owner) => ({ ...owner }));
    copy.sessions = this.sessions.map((session) => ({ ...session }));
    copy.net = [...this.net];
    return copy;
  }

  owner(id: string): EntryOwner {
    return this.owners.find((owner) => owner.id === id) as EntryOwner;
  }

  session(client: string): SessionSide {
    return this.sessions.find((session) => session.client === client) as SessionSide;
  }

  /** The owners differ in what they ask for, so none are exchanged. Messages have no order. */
  key(): string {
    const { tick, revision, term, places, budget, isCalm, looks, departed } = this;
    const state = [tick, revision, term, places, budget, isCalm, looks, departed];
    const sides = [this.owners, this.sessions].map((all) => all.map((one) => Object.values(one)));
    return JSON.stringify([state, sides, this.net.map((one) => JSON.stringify(one)).sort()]);
  }
}
