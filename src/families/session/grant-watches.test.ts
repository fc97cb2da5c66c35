import { beforeEach, describe, expect, it } from "vitest";
import { claimOf } from "../../../test/fixtures/ledger-server.js";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { CountedMoment } from "../../../test/fixtures/moment.js";
import { GrantWatches } from "./grant-watches.js";
import { HeldEntries } from "./held-entries.js";
import { Queues } from "./queues.js";
import type { OwnEntry, Sequencer } from "./sequencer.js";
import type { Session } from "./session.js";
import { SessionGrant } from "./session-grant.js";

const entry: OwnEntry = {
  lock: { space: "lock", name: "a" },
  claim: claimOf("a"),
  id: "1",
  text: "",
  token: 7n,
  isWithdrawn: false,
};

let watches: GrantWatches;
let grant: SessionGrant;
const [home, to] = [1, 2].map(() => ({ deadlineMs: 30_000, add: () => {} }) as unknown as Session);

beforeEach(() => {
  const sequencer = { runtime: new ManualRuntime() } as unknown as Sequencer;
  const held = new HeldEntries();
  watches = new GrantWatches(sequencer, new Queues(sequencer, held), held);
  grant = new SessionGrant(entry, home as Session, new CountedMoment(1));
  watches.take(grant);
});

describe("a grant that moves to another session", () => {
  it("survives the end of that one only if the store was not asked to move it yet", () => {
    grant.move = { to: to as Session, isSent: false };
    watches.onSessionLost(entry, to as Session, "session_ended");
    expect(grant.loss).toBeNull();
    grant.move.isSent = true;
    watches.onSessionLost(entry, to as Session, "session_ended");
    expect(grant.loss).toEqual({ reason: "session_ended", detail: "" });
  });

  it("ends with the session that it is in", () => {
    grant.move = { to: to as Session, isSent: false };
    watches.onSessionLost(entry, home as Session, "expired");
    expect(grant.loss).toMatchObject({ reason: "expired" });
  });
});
