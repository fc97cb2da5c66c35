// Two candidates, one leader. When the leader is told to go, the other follows.
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast } from "holdfast";
import { MemorySpace, memoryStore } from "holdfast/memory";

const space = new MemorySpace();
const open = (name) => new Holdfast(memoryStore({ space }), { meta: { candidate: name } });
const [north, south, operator] = [open("north"), open("south"), open("operator")];

const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());

async function candidate(name, locks) {
  const lead = async (lease) => {
    console.log(`${name} leads`);
    const ending = AbortSignal.any([lease.signal, stop.signal]);
    // Work in small steps, and look at the signal between them.
    while (!ending.aborted) await sleep(5);
    const why = lease.state === "lost" ? lease.signal.reason.reason : "told to";
    console.log(`${name} ends: ${why}`);
  };
  try {
    await locks.election("indexer").lead(lead, { signal: stop.signal });
  } catch (error) {
    if (!stop.signal.aborted) throw error; // told to stop while it was a candidate
  }
}

const followed = (async () => {
  const watch = { everyMs: 5, signal: stop.signal };
  const seen = [];
  for await (const leader of operator.election("indexer").observe(watch)) {
    if (leader) seen.push(leader.meta.candidate);
  }
  return seen;
})();

const candidates = [candidate("north", north), candidate("south", south)];
await sleep(50);

// Compare-and-revoke: it ends this very lease, and no newer one. North notices at its next look,
// when south may lead already: for that moment whatever they write to has to check the token.
const leader = await operator.election("indexer").leader();
if (leader) {
  await operator.revoke("indexer", { token: leader.token, reason: "maintenance" }, "election");
}
await sleep(50);

stop.abort();
await Promise.all(candidates);
console.log(`seen: ${(await followed).join(", ")}`);
await Promise.all([north, south, operator].map((locks) => locks.close()));
