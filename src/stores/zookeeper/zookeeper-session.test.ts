import { expect, it } from "vitest";
import { ManualRuntime } from "../../../test/fixtures/manual-runtime.js";
import { ZookeeperDouble } from "../../../test/fixtures/zookeeper-double.js";
import type { Claim } from "../../contract/store.js";
import { NO_LIMIT } from "../../rules/fits.js";
import { zookeeperEntry } from "./zookeeper-entry.js";
import { ZookeeperSequencer } from "./zookeeper-store.js";

const LIMIT_MS = 1_000;

const CLAIM: Claim = {
  space: "once",
  name: "n",
  owner: "o",
  mode: "exclusive",
  weight: 1,
  limit: NO_LIMIT,
  ttlMs: 4_000,
  storeTimeoutMs: LIMIT_MS,
  span: 1,
  meta: {},
  transferable: false,
  ownSession: false,
};

it("judges a mark by the time in an entry that it finds again", async () => {
  // The double made all znodes at the time 0, and the wall clock of this machine is years ahead.
  const server = new ZookeeperDouble();
  const options = { chroot: "", namespace: "", shape: "mutex", isDirect: false, acl: [] } as const;
  const ensemble = server.ensemble(new ManualRuntime());
  const store = new ZookeeperSequencer(ensemble, { ...options, servers: "the test" });
  const session = await store.openSession(CLAIM.ttlMs, LIMIT_MS);
  const entry = zookeeperEntry(session.makeEntry(CLAIM, ""));
  entry.unanswered = 1;
  server.znodes.set(`${entry.queue}/${entry.prefix}0000000001`, "");
  server.znodes.set(`${entry.queue}/done-7`, "60000\n");
  const entering = await session.enter(entry, "any", LIMIT_MS);
  expect(entering.type).toBe("refused");
});
