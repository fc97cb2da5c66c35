// Counts what happens to locks, without touching the code that uses them.
import { subscribe, tracingChannel } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { channels, Holdfast } from "holdfast";
import { MemorySpace, memoryStore } from "holdfast/memory";

const counts = new Map();
const count = (what) => counts.set(what, (counts.get(what) ?? 0) + 1);

// `acquire` is a tracing channel: it has a start and an end. All others carry one message.
tracingChannel(channels.acquire).subscribe({
  asyncEnd: ({ outcome }) => count(`acquire ${outcome}`),
});
subscribe(channels.release, ({ outcome }) => count(`release ${outcome}`));
subscribe(channels.lost, ({ reason }) => count(`lost ${reason}`));

const space = new MemorySpace();
const ours = new Holdfast(memoryStore({ space }));
const theirs = new Holdfast(memoryStore({ space }));

await ours.mutex("job").run(() => sleep(5));
const lease = await ours.mutex("job").acquire();
await theirs.mutex("job").tryAcquire();
await theirs.revoke("job", { token: lease.token, reason: "to show it" });
await sleep(5);
console.log(`released: ${await lease.release()}`);

for (const [what, times] of [...counts].sort()) console.log(`${what}: ${times}`);
await Promise.all([ours.close(), theirs.close()]);
